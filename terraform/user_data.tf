# What a node does at its first boot: install the agent, then run the user's script.

locals {
  agent_config = var.agent == null ? null : templatefile("${path.module}/cloud-init/agent.yaml.tftpl", {
    daemon_address = var.agent.daemon_address
    job_id         = var.agent.job_id
    ca_pem         = var.agent.ca_pem
    package        = var.agent.package
    tls_fetch_command = templatefile("${path.module}/cloud-init/fetch-certificate.sh.tftpl", {
      fleet_name        = var.fleet_name
      region            = var.region
      certificate_store = var.agent.certificate_store
    })
  })

  user_data_parts = {
    for key, p in var.pools : key => [
      for part in [
        # cloud-init runs scripts in the order of their names, and what starts the agent is called runcmd.
        { type = "text/cloud-config", name = "agent", text = local.agent_config },
        { type = "text/x-shellscript", name = "user-script", text = try(var.user_data[key], var.user_data[p.role], null) },
      ] : part if part.text != null
    ]
  }

  user_data = {
    for key, parts in local.user_data_parts : key => length(parts) == 0 ? "" : templatefile("${path.module}/user-data.mime.tftpl", {
      boundary = sha256(jsonencode(parts)) # not in base64 text, so it cannot end a part early
      parts    = parts
    })
  }

  # Compressed, since EC2 takes little; cloud-init unpacks it.
  user_data_base64 = { for key, text in local.user_data : key => text == "" ? null : base64gzip(text) }
  user_data_bytes  = { for key, text in local.user_data_base64 : key => text == null ? 0 : floor(length(trim(text, "=")) * 3 / 4) }
}
