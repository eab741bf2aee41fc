"""Speed against peers on the same problem: one file per job, each with ``rows()``; ``scripts/bench`` runs them.

A row holds job, peer, ours_per_s, peer_per_s, ratio and agree: whether both gave the same answer. No row is shown as
a speed unless it agrees. Times are processor time of one core, the least of several repeats, in one process after
the other on one machine; only ratios mean anything.
"""
