int probe_needed() { return 77; }
