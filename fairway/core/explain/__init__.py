"""Why a workload waits, what it lacks, how queues stand: worked out for whoever asks."""
