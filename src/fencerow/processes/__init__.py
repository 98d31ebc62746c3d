"""Child processes, in which jobs run that may take their process down."""
