"""The server: some rounds of averaging, and what they came to."""

import numpy
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    sites = int(context.run_config["sites"])
    strategy = FedAvg(min_train_nodes=sites, min_evaluate_nodes=sites, min_available_nodes=sites)
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord([numpy.zeros(1)]),
        num_rounds=int(context.run_config["rounds"]),
    )
    (model,) = result.arrays.to_numpy_ndarrays()
    print(f"the model is {float(model[0])}", flush=True)
