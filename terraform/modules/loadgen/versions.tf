terraform {
  required_version = ">= 1.8"

  required_providers {
    # For modules/hosts; named here, too, so that tests of this module can mock it.
    # tflint-ignore: terraform_unused_required_providers
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.8, < 7.0"
    }
  }
}
