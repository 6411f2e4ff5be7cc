"""The whole node: joins the parts below and takes commands, from this process and from others."""
