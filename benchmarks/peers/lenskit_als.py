"""Time lenskit's BiasedMF ALS: argv is a .npz file of users, items and values, the factors, the repeats."""

import json
import sys
import time

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from lenskit.als import BiasedMFScorer  # type: ignore[import-not-found]
from lenskit.data import from_interactions_df  # type: ignore[import-not-found]
from lenskit.training import TrainingOptions  # type: ignore[import-not-found]

path, factors, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with np.load(path) as file:
    table = {"user_id": file["users"], "item_id": file["items"], "rating": file["values"]}
scorer = BiasedMFScorer(embedding_size=factors, epochs=repeats, regularization=0.1)
trainer = scorer.create_trainer(from_interactions_df(pd.DataFrame(table)), TrainingOptions(rng=0))

times = []
for _ in range(repeats):
    start = time.process_time()
    trainer.train_epoch()
    times.append(time.process_time() - start)
print(json.dumps({"seconds": min(times)}))
