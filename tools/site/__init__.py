"""The documentation as a site: built from our pages, without a network, and checked while it is built."""
