"""What this laptop keeps of others' projects, and they of its: told, and removed."""
