"""The daemon on the wire: services, who may call them, and how errors are told."""
