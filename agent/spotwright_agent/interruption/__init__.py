"""What a cloud says about taking this host away: asked, kept apart, told once."""
