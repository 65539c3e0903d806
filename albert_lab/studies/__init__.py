"""Many runs: experiments, their points and their graph, sweeps, and tables of results."""
