"""Many runs: experiments, their points, the plan of a study, its execution, and tables of
results.
"""
