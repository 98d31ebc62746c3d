"""One file for each driver: leads its connections to the scratch database, and its statements through the seam."""
