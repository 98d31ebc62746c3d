"""The first hour of a newcomer as a script: README, tutorial and the guide of HTTP, each taken from its page."""
