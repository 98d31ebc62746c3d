"""`fencerow top`: what a look sees, how a frame shows it, and the terminal that it is drawn on."""
