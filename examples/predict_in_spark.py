"""Predict with an exported model in Spark, without cadr: takes torch, numpy, pyarrow and pyspark.

    cadr export RUN --out exported
    spark-submit examples/predict_in_spark.py exported/model.pt2 rows.parquet predictions

The table is to have the features as columns of numbers. `predictions` becomes a folder of Parquet files.
"""

import json
import sys

import numpy as np
import pyarrow as pa
import torch
from pyspark import SparkFiles
from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType, StringType, StructField, StructType


def predict(batches, name="model.pt2"):
    """Of a part of the table, in a process of its own, which loads the program once."""
    inside = {"classes.json": "", "input.json": ""}
    model = torch.export.load(SparkFiles.get(name), extra_files=inside).module()
    labels, features = json.loads(inside["classes.json"]), json.loads(inside["input.json"])["feature_names"]
    for rows in batches:
        x = np.stack([rows.column(column).to_numpy(zero_copy_only=False) for column in features], axis=1)
        with torch.inference_mode():
            probabilities = model(torch.from_numpy(x.astype(np.float32))).double().numpy()
        predicted = pa.array([labels[i] for i in probabilities.argmax(1)])
        kept = rows.drop_columns(features)
        columns = [*kept.columns, predicted, pa.array(probabilities.max(1))]
        yield pa.RecordBatch.from_arrays(columns, names=[*kept.schema.names, "predicted", "probability"])


if __name__ == "__main__":
    program, data, out = sys.argv[1:]
    spark = SparkSession.builder.appName("predict").getOrCreate()
    spark.sparkContext.addFile(program)
    rows = spark.read.parquet(data)
    inside = {"input.json": ""}
    torch.export.load(program, extra_files=inside)
    features = json.loads(inside["input.json"])["feature_names"]
    kept = [field for field in rows.schema.fields if field.name not in features]
    new = [StructField("predicted", StringType()), StructField("probability", DoubleType())]
    rows.mapInArrow(predict, StructType([*kept, *new])).write.parquet(out)
    spark.stop()
