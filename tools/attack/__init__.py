"""What strangers may send to a gateway, and whether it stands: a real `fencerow serve`, attacked over real sockets."""
