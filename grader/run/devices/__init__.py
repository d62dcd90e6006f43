"""Who may use which GPUs and cores of this host, and until when: inventory, allocation, leases between processes.

`leases.Devices(state_dir).lease(Need(…))` is the door. Never starts, stops or configures a device, and never looks at
what runs on it beyond naming it.
"""
