# SPDX-License-Identifier: Apache-2.0
"""Rival: Lightning as in its documentation; logger, progress bar and checkpoints disabled."""

import time

import lightning
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from peers_common import LEARNING_RATE, answer, arguments, fashion_mnist, network, prepare, scaled


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = network()

    def training_step(self, batch, batch_idx):
        data, target = batch
        return cross_entropy(self.net(scaled(data)), target)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=LEARNING_RATE)


class Clock(lightning.Callback):
    """Runs from the end of the last warm-up step to the end of the last step."""

    def __init__(self, warmup: int, steps: int):
        self.warmup, self.last = warmup, warmup + steps
        self.start = self.end = 0.0

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == self.warmup:
            self.start = time.perf_counter()
        elif trainer.global_step == self.last:
            self.end = time.perf_counter()


def main() -> None:
    args = arguments()
    prepare()
    images, labels = fashion_mnist(args.data)
    loader = DataLoader(
        TensorDataset(images, labels), batch_size=args.batch, shuffle=True, drop_last=True
    )
    module = Classifier()
    clock = Clock(args.warmup, args.steps)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=-1,
        max_steps=args.warmup + args.steps,
        callbacks=[clock],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, loader)
    answer(args, clock.end - clock.start, module.net, images, labels)


if __name__ == "__main__":
    main()
