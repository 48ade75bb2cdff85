"""Object stores: local files, memory and the buckets that obstore reaches, behind the verbs of
`ports.stores`.
"""
