"""The PerfTest commands of the published measurements, and how one of them is run and checked."""
