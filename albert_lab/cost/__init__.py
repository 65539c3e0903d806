"""What runs cost: parameters, FLOPs, memory, time; counted, estimated and measured."""
