# A migration on this machine to practise on: a Redis, a KeyDB and the proxy between them, by the commands of
# `shadow-compare local`.

locals {
  directory = abspath(var.directory)
  running   = "${local.directory}/running.json"

  ports = { redis = var.redis_port, keydb = var.keydb_port, proxy = var.proxy_port, admin = var.admin_port }

  # Linux shows each process. Elsewhere only the file tells, which goes with the proxy's process.
  shows_processes = fileexists("/proc/self/stat")
  ran             = try(jsondecode(file(local.running)), null)
  runs = local.ran != null && (!local.shows_processes || try(
    alltrue([for pid in [local.ran.pid, local.ran.source.pid, local.ran.target.pid] : fileexists("/proc/${pid}/stat")]),
    false,
  ))
  options = join(" ", [for server, port in local.ports : "--${server}-port ${port}" if port != null])
}

resource "terraform_data" "migration" {
  input = {
    directory = local.directory
    running   = local.running
    program   = abspath("${path.module}/../../../shadow-proxy/bin/shadow-compare.mjs")
  }

  # Terraform cannot look at processes. If one of them ended (proxy, Redis or KeyDB), this plan's time is a new ID: the
  # rest is stopped, and everything is started again, empty.
  triggers_replace = {
    options = local.options
    id      = local.runs ? local.ran.id : plantimestamp()
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
