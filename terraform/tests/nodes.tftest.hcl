# What a node is given: its network cards, what it runs at boot, and what it may do in the account.

mock_provider "aws" {
  source = "./tests/aws"
}

variables {
  schema_version          = 1
  fleet_name              = "llm"
  plan_id                 = "p-1"
  region                  = "us-east-1"
  cost_usd_low            = 1000
  cost_usd_high           = 1100
  cluster_placement_group = true
  pools = {
    worker-p4d-24xlarge-use1-az4-on-demand = {
      role       = "worker", instance_type = "p4d.24xlarge", zone_id = "use1-az4", market = "on-demand",
      node_count = 2, max_price_usd_per_hour = "33", efa_interfaces = 4
    }
    worker-p5-48xlarge-use1-az6-spot = {
      role       = "worker", instance_type = "p5.48xlarge", zone_id = "use1-az6", market = "spot",
      node_count = 2, max_price_usd_per_hour = "40", efa_interfaces = 32
    }
  }
}

run "efa_has_one_interface_on_each_network_card" {
  assert {
    condition = {
      for key, template in aws_launch_template.this : key => [for n in template.network_interfaces : [n.network_card_index, n.device_index, n.interface_type]]
      } == {
      worker-p4d-24xlarge-use1-az4-on-demand = [[0, 0, "efa"], [1, 1, "efa"], [2, 1, "efa"], [3, 1, "efa"]]
      worker-p5-48xlarge-use1-az6-spot       = [for card in range(32) : [card, card == 0 ? 0 : 1, "efa"]]
    }
    error_message = "Card 0 has device 0 and each other card device 1, as EC2 asks."
  }
  assert {
    condition = alltrue(flatten([
      for t in aws_launch_template.this : [for n in t.network_interfaces : n.security_groups == toset([aws_security_group.this.id]) && n.delete_on_termination == "true"]
    ]))
    error_message = "Each interface is in the fleet's security group and goes with its node."
  }
  assert {
    condition     = alltrue([for t in aws_launch_template.this : length(coalesce(t.vpc_security_group_ids, [])) == 0])
    error_message = "EC2 refuses security groups beside interfaces."
  }
}

run "a_spot_parameter_server_if_allowed" {
  variables {
    allow_spot_parameter_servers = true
    pools = {
      ps-m5-xlarge-use1-az4-spot = {
        role       = "ps", instance_type = "m5.xlarge", zone_id = "use1-az4", market = "spot",
        node_count = 1, max_price_usd_per_hour = "0.1", efa_interfaces = 0
      }
    }
  }
  assert {
    condition     = [for m in aws_instance.this["ps-m5-xlarge-use1-az4-spot/0"].instance_market_options : [m.market_type, m.spot_options[0].max_price]] == [["spot", "0.1"]]
    error_message = "It has its ceiling."
  }
}

run "the_agent_is_started_with_nothing_secret" {
  variables {
    agent     = { daemon_address = "gpu-head:7443", ca_pem = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n", package = "spotwright==0.1.0" }
    user_data = { worker = "#!/bin/sh\necho role é", worker-p5-48xlarge-use1-az6-spot = "#!/bin/sh\necho pool" }
  }
  assert {
    condition = alltrue([
      for key, t in aws_launch_template.this : t.user_data == base64gzip(local.user_data[key]) && strcontains(local.user_data[key], base64encode(local.agent_config))
    ])
    error_message = "Each template's user data holds the agent's cloud-init."
  }
  assert {
    condition     = startswith(local.agent_config, "#cloud-config\n") && yamldecode(local.agent_config).runcmd[0][0] == "systemctl" && strcontains(local.agent_config, "gpu-head:7443")
    error_message = "The agent is started, and told its daemon."
  }
  assert {
    # The one mention of a private key is the pattern by which a node takes its own apart.
    condition     = !strcontains(local.agent_config, "BEGIN PRIVATE KEY") && !strcontains(local.agent_config, "BEGIN RSA") && !strcontains(local.agent_config, "BEGIN EC")
    error_message = "No key is in it."
  }
  assert {
    condition     = strcontains(local.user_data["worker-p4d-24xlarge-use1-az4-on-demand"], base64encode("#!/bin/sh\necho role é")) && strcontains(local.user_data["worker-p5-48xlarge-use1-az6-spot"], base64encode("#!/bin/sh\necho pool")) && !strcontains(local.user_data["worker-p5-48xlarge-use1-az6-spot"], base64encode("#!/bin/sh\necho role é"))
    error_message = "A pool's own script goes before its role's."
  }
  assert {
    # What starts the agent is called runcmd.
    condition = alltrue([
      for text in local.user_data : join(" ", flatten(regexall("Content-Type: (.*);.*\n.*\nContent-Disposition: attachment; filename=\"(.*)\"", text))) == "text/cloud-config agent text/x-shellscript user-script"
    ]) && sort(["user-script", "runcmd"])[0] == "runcmd"
    error_message = "cloud-init runs scripts in the order of their names: the agent's start, then the user's."
  }
}

run "a_node_may_read_its_own_certificate_and_use_the_fleets_bucket_and_logs" {
  variables {
    agent                    = { daemon_address = "gpu-head:7443", ca_pem = "-----BEGIN CERTIFICATE-----", package = "spotwright==0.1.0" }
    create_checkpoint_bucket = true
    log_retention_days       = 14
  }
  assert {
    condition = jsondecode(aws_iam_role_policy.this[0].policy).Statement == [
      {
        Sid       = "ReadOwnCertificate", Effect = "Allow", Action = ["ssm:GetParameter"]
        Resource  = ["arn:aws:ssm:us-east-1:123456789012:parameter/spotwright/llm/agents/*"]
        Condition = { StringEquals = { "aws:ResourceTag/SpotwrightInstance" = "$${ec2:SourceInstanceARN}" } }
      },
      { Sid = "ListCheckpoints", Effect = "Allow", Action = ["s3:ListBucket"], Resource = [aws_s3_bucket.this[0].arn] },
      {
        Sid      = "KeepCheckpoints", Effect = "Allow"
        Action   = ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"]
        Resource = ["${aws_s3_bucket.this[0].arn}/*"]
      },
      { Sid = "WriteLogs", Effect = "Allow", Action = ["logs:CreateLogStream", "logs:PutLogEvents"], Resource = ["${aws_cloudwatch_log_group.this[0].arn}:*"] },
    ]
    error_message = "Nothing else is allowed."
  }
  assert {
    condition     = jsondecode(aws_iam_role.this.assume_role_policy).Statement == [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "ec2.amazonaws.com" } }]
    error_message = "Only instances have the role."
  }
  assert {
    condition     = alltrue([for b in aws_s3_bucket_public_access_block.this : b.block_public_acls && b.block_public_policy && b.ignore_public_acls && b.restrict_public_buckets]) && length(aws_s3_bucket_server_side_encryption_configuration.this) == 1 && aws_cloudwatch_log_group.this[0].retention_in_days == 14
    error_message = "The bucket is closed and encrypted, and logs are kept as long as asked."
  }
  assert {
    condition = alltrue([for s in jsondecode(aws_s3_bucket_policy.this[0].policy).Statement : s.Effect == "Deny" && s.Condition == { Bool = { "aws:SecureTransport" = "false" } }]) && alltrue([
      for l in aws_s3_bucket_lifecycle_configuration.this : l.rule[0].abort_incomplete_multipart_upload[0].days_after_initiation == 7
    ])
    error_message = "The bucket is reached by TLS alone, and keeps no halves of uploads."
  }
  assert {
    condition = alltrue([for group in aws_autoscaling_group.this : anytrue([for t in group.tag : t.key == "CheckpointBucket" && t.value == "spotwright-llm-1" && t.propagate_at_launch])]) && alltrue(flatten([
      for template in aws_launch_template.this : [for s in template.tag_specifications : !contains(keys(s.tags), "CheckpointBucket")]
    ]))
    error_message = "A node reads the bucket's name from its tags, and a bucket that is added later makes no template new."
  }
}

run "roles_are_apart_from_others_and_bounded_if_asked" {
  variables {
    permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary"
  }
  assert {
    condition     = [aws_iam_role.this.path, aws_iam_instance_profile.this.path] == ["/spotwright/", "/spotwright/"]
    error_message = "Role and profile have a path of their own."
  }
  assert {
    condition     = aws_iam_role.this.permissions_boundary == "arn:aws:iam::123456789012:policy/boundary"
    error_message = "The role has the boundary."
  }
}

run "containers_may_ask_for_metadata_if_allowed" {
  variables {
    metadata_hop_limit = 2
    pools = {
      ps-m5-xlarge-use1-az4-on-demand = {
        role       = "ps", instance_type = "m5.xlarge", zone_id = "use1-az4", market = "on-demand",
        node_count = 1, max_price_usd_per_hour = "0.192", efa_interfaces = 0
      }
      worker-p5-48xlarge-use1-az6-spot = {
        role       = "worker", instance_type = "p5.48xlarge", zone_id = "use1-az6", market = "spot",
        node_count = 2, max_price_usd_per_hour = "40", efa_interfaces = 32
      }
    }
  }
  assert {
    condition = [
      for m in concat([for t in aws_launch_template.this : t.metadata_options[0]], [for i in aws_instance.this : i.metadata_options[0]]) : m.http_put_response_hop_limit
    ] == [2, 2] && alltrue([for terms in terraform_data.terms : terms.input.metadata_hop_limit == 2])
    error_message = "Workers and servers have the limit, and another one is another template."
  }
}

run "certificates_from_secrets_manager" {
  variables {
    agent = { daemon_address = "gpu-head:7443", ca_pem = "-----BEGIN CERTIFICATE-----", package = "spotwright==0.1.0", certificate_store = "secretsmanager" }
  }
  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.this[0].policy).Statement : [s.Action, s.Resource, s.Condition]] == [[
      ["secretsmanager:GetSecretValue"], ["arn:aws:secretsmanager:us-east-1:123456789012:secret:spotwright/llm/agents/*"],
      { StringEquals = { "aws:ResourceTag/SpotwrightInstance" = "$${ec2:SourceInstanceARN}" } },
    ]]
    error_message = "A node may read its own secret and no other."
  }
}
