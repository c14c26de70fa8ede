"""A site: it knows one number, and moves the model half the way towards it."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    (model,) = message.content["arrays"].to_numpy_ndarrays()
    moved = model + (float(context.node_config["number"]) - model) / 2
    content = RecordDict(
        {"arrays": ArrayRecord([moved]), "metrics": MetricRecord({"num-examples": 1})}
    )
    return Message(content=content, reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    (model,) = message.content["arrays"].to_numpy_ndarrays()
    distance = abs(float(context.node_config["number"]) - float(model[0]))
    metrics = MetricRecord({"num-examples": 1, "distance": distance})
    return Message(content=RecordDict({"metrics": metrics}), reply_to=message)
