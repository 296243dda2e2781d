# A migration on this machine to practise on: a Redis, a KeyDB and the proxy between them, by the commands of
# `shadow-compare local`.

locals {
  directory = abspath(var.directory)
  running   = "${local.directory}/running.json"

  ports   = { redis = var.redis_port, keydb = var.keydb_port, proxy = var.proxy_port, admin = var.admin_port }
  options = join(" ", [for server, port in local.ports : "--${server}-port ${port}" if port != null])
}

resource "terraform_data" "migration" {
  input = {
    directory = local.directory
    running   = local.running
    program   = abspath("${path.module}/../../../shadow-proxy/bin/shadow-compare.mjs")
  }

  # The processes are no resources that Terraform could look at. The file goes with them, however they ended: where it is gone,
  # the moment of this plan is a new ID, and all is started again. Linux also tells of a file that outlived a power cut.
  triggers_replace = {
    options = local.options
    id = (
      fileexists(local.running) && (!fileexists("/proc/self/stat") || try(fileexists("/proc/${jsondecode(file(local.running)).pid}/stat"), false))
      ? jsondecode(file(local.running)).id
      : plantimestamp()
    )
  }

  provisioner "local-exec" {
    command     = "node \"$PROGRAM\" local up --directory \"$DIRECTORY\" --id \"$ID\" ${self.triggers_replace.options}"
    environment = { PROGRAM = self.input.program, DIRECTORY = self.input.directory, ID = self.triggers_replace.id }
  }

  provisioner "local-exec" {
    when        = destroy
    command     = "node \"$PROGRAM\" local down --directory \"$DIRECTORY\""
    environment = { PROGRAM = self.input.program, DIRECTORY = self.input.directory }
  }
}
