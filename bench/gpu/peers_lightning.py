# SPDX-License-Identifier: Apache-2.0
"""Rival: Lightning as in its documentation, with a DataLoader and fused AdamW; logger, progress bar and
checkpoints disabled."""

from common_gpu import F, LEARNING_RATE, Clock, Job, answer, arguments, loader_of, not_run, torch

try:
    import lightning
    from lightning.pytorch.plugins.environments import LightningEnvironment
except ImportError:
    not_run("lightning is not installed")


class Classifier(lightning.LightningModule):
    def __init__(self, net: torch.nn.Module):
        super().__init__()
        self.net = net

    def training_step(self, batch, batch_idx):
        data, target = batch
        return F.cross_entropy(self.net(data), target)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=LEARNING_RATE, fused=True)


class Told(lightning.Callback):
    def __init__(self, clock: Clock):
        self.clock = clock

    def on_train_batch_end(self, trainer, *_):
        self.clock.done(trainer.global_step)


def main() -> None:
    args = arguments(["lightning"], ["mlp"])
    job, clock = Job(args.job), Clock(args)
    on_gpu = args.device.type == "cuda"
    trainer = lightning.Trainer(
        accelerator="gpu" if on_gpu else "cpu",
        devices=1,
        max_epochs=-1,
        max_steps=clock.all_steps(),
        callbacks=[Told(clock)],
        # Explicit, so that Lightning does not ask mpi4py for another, which may start MPI and hang.
        plugins=[LightningEnvironment()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(job.net), loader_of(job, args.device))
    answer(args, "lightning", "lightning", job, clock)


if __name__ == "__main__":
    main()
