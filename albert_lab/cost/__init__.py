"""The cost of runs: parameters, FLOPs, memory and time; counted, estimated and measured."""
