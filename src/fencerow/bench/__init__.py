"""`fencerow bench`: how fast is it here, each figure beside the raw limit of the same database in the same run."""
