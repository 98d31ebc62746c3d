"""What stands between the network and the routes: bodies, JSON, headers, rates and room.

All of it is bounded, and refuses with an error that knows its HTTP status. It knows no routes and no database.
"""
