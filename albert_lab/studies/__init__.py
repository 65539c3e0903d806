"""Many runs: experiments, their points and graph, sweeps, and the table of what came of them."""
