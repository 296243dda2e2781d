# No provider is downloaded and no account is needed: terraform_data is built in.
terraform {
  required_version = ">= 1.9"
}
