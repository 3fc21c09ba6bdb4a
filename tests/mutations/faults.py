# SPDX-License-Identifier: Apache-2.0
"""The faults that run.py plants: small, typical bugs, each with the check that finds it.

A fault's `old` text occurs exactly once in its file, on whole lines or within one; `new` replaces it.
Except if `at` is "build", the sources compile with it: a fault that the compiler finds says nothing
about the tests.

A check is `test("regex")`, which is `./dev test -R regex` (names are "room: path/of/test/file"), or
`stage("word")`, which is `./dev test --all word` (a word of the stage's name in .ci/stages.sh).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """A call of ./dev."""

    arguments: tuple[str, ...]  # after `./dev test`
    stage: bool

    def __str__(self) -> str:
        return " ".join(("test", *self.arguments))


def test(regex: str) -> Check:
    return Check(("-R", regex), stage=False)


def stage(word: str) -> Check:
    return Check(("--all", word), stage=True)


@dataclass(frozen=True)
class Fault:
    name: str
    breaks: str  # one sentence
    file: str  # relative to the root of the checkout
    old: str
    new: str
    check: Check
    at: str = "test"  # where the check finds it: "test" or "build"


# This stage compiles each header by itself.
HEADERS_ALONE = stage("headers")
# The names of tests/fault are sentences; these are their beginnings.
ORDER_OF_CALLS = test("^fault: nothing gets its name before")


FAULTS = (
    # ---- the store ------------------------------------------------------------------------------
    Fault(
        name="name-before-contents",
        breaks="A checkpoint gets its name before the disk has the entries of its folder.",
        file="include/frugal/checkpoint/commit.hpp",
        old="    sync_folder(temporary_);\n    auto const folder = publish(replaces);\n",
        new="    auto const folder = publish(replaces);\n    sync_folder(folder);\n",
        check=ORDER_OF_CALLS,
    ),
    Fault(
        name="new-folder-not-durable",
        breaks="The folders of a new run are made and never fsynced: a power cut loses the whole run.",
        file="include/frugal/base/folder.hpp",
        old='  sync_folder(above.empty() ? "." : above);\n',
        new="",
        check=ORDER_OF_CALLS,
    ),
    Fault(
        name="takeover-without-second-look",
        breaks="Who replaces a dead owner does not look again whether it is still the dead one's: two win.",
        file="include/frugal/checkpoint/owner_file.hpp",
        old="      require_dead(path_, lock_);  // still the dead one's?\n",
        new="",
        check=test("^torch-free: checkpoint/lock$"),
    ),
    Fault(
        name="lock-not-looked-at",
        breaks="Whoever deletes checkpoints does not look whether the folder is still the one that is locked.",
        file="include/frugal/checkpoint/lock.hpp",
        old="    detail::require_same_file(path_, id_);\n",
        new="",
        check=test("^torch-free: checkpoint/(lock|run_directory)$"),
    ),
    Fault(
        name="stamp-of-the-manifest-alone",
        breaks="A checkpoint that was verified is believed although its weights were written to since.",
        file="include/frugal/checkpoint/verified.hpp",
        old="    for (FileEntry const& entry : checkpoint.manifest.files) {\n"
        "      if (!add(checkpoint.folder / entry.name)) return std::nullopt;\n"
        "    }\n",
        new="",
        check=test("^torch-free: checkpoint/run_directory$"),
    ),
    Fault(
        name="one-too-many-deleted",
        breaks="Retention keeps one checkpoint less than it was told.",
        file="include/frugal/checkpoint/retention.hpp",
        old="n < std::min(retention.last, live.size()); ++n) kept[live[n]] = true;",
        new="n + 1 < std::min(retention.last, live.size()); ++n) kept[live[n]] = true;",
        check=test("^torch-free: checkpoint/retention$"),
    ),
    Fault(
        name="gathered-past-the-end",
        breaks="Small tensors are gathered until the buffer is full, and not until the next does not fit.",
        file="include/frugal/checkpoint/safetensors_writer.hpp",
        old="if (size > gather_most || filled + size > gather_size) flush();",
        new="if (size > gather_most || filled >= gather_size) flush();",
        check=test("^torch-free: checkpoint/safetensors_writer$"),
    ),
    Fault(
        name="half-a-byte",
        breaks="A tensor of 4-bit elements that ends within a byte is taken.",
        file="include/frugal/checkpoint/safetensors_layout.hpp",
        old="    if (*bits % 8 != 0) {\n",
        new="    if (*bits % 4 != 0) {\n",
        check=test("^torch-free: checkpoint/safetensors_hostile$"),
    ),
    Fault(
        name="brackets-without-end",
        breaks="JSON of a metadata service may nest as deep as it likes: its destructor recurses.",
        file="include/frugal/base/json.hpp",
        old="    if (open_.size() == deepest) return false;\n",
        new="",
        check=test("^torch-free: (base/json|policy/spot/aws)$"),
    ),
    # ---- composition ----------------------------------------------------------------------------
    Fault(
        name="stage-ignored",
        breaks="Checkpoint comes where the alphabet has it, and saves before others have done their part.",
        file="include/frugal/core/compose/order.hpp",
        old="    return stages[one] != stages[other] ? stages[one] < stages[other]\n",
        new="    return stages[one] == Stage::leave ? stages[one] < stages[other]\n",
        check=test("^torch-free: core/compose/order$"),
    ),
    Fault(
        name="need-not-asked",
        breaks="A trainer whose recipe lacks what a policy needs compiles.",
        file="include/frugal/core/compose/legality.hpp",
        old="    constexpr bool needs = (true & ... & require_needs<Ps>(typename needs_of<Ps>::type{}));\n",
        new="    constexpr bool needs = true;\n",
        check=test("^reject: engine_missing_need$"),
    ),
    Fault(
        name="sentence-changed",
        breaks="The sentence of a static_assert is no longer the one that its page quotes.",
        file="include/frugal/policy/clip/norm.hpp",
        old="Write ClipNorm<1.0_r>, or leave it out.",
        new="Write ClipNorm<1.0_r>.",
        check=test("^docs: code, quoted sentences"),
    ),
    Fault(
        name="example-that-does-not-compile",
        breaks="The first example of a page sets a member that the policy does not have.",
        file="docs/policy/early_stop.md",
        old="fr::WatchAccuracy>{.min_delta = 0.001,",
        new="fr::WatchAccuracy>{.minimum_delta = 0.001,",
        check=test("^docs: policy/early_stop$"),
        at="build",
    ),
    Fault(
        name="include-forgotten",
        breaks="A header compiles only behind another that happens to come before it everywhere.",
        file="include/frugal/checkpoint/verified.hpp",
        old="#include <frugal/checkpoint/checkpoint.hpp>\n",
        new="",
        check=HEADERS_ALONE,
        at="build",
    ),
    Fault(
        name="not-inline",
        breaks="A function in a header is not inline: two files that include it do not link.",
        file="include/frugal/checkpoint/commit.hpp",
        old="FRUGAL_INLINE std::string step_name(",
        new="std::string step_name(",
        check=test("^odr: "),
        at="build",
    ),
    Fault(
        name="room-not-installed",
        breaks="The installed package lacks the headers of a room that the sources have.",
        file="cmake/FrugalInstall.cmake",
        old='  FILES_MATCHING PATTERN "*.hpp")\n',
        new='  FILES_MATCHING PATTERN "*.hpp" PATTERN "cluster" EXCLUDE)\n',
        check=stage("installed"),
    ),
    # ---- data -----------------------------------------------------------------------------------
    Fault(
        name="seek-to-a-batch",
        breaks="A seek into the middle of a batch goes to the batch's beginning: samples come twice.",
        file="include/frugal/data/sampling/pass.hpp",
        old="    position_ = cursor.position;\n",
        new="    position_ = cursor.position - cursor.position % static_cast<std::uint64_t>(loading_.batch);\n",
        check=test("^torch-free: data/sampling/pass$"),
    ),
    Fault(
        name="product-that-overflows",
        breaks="The size of an IDX array is multiplied first and compared with the limit afterwards.",
        file="include/frugal/data/idx/idx.hpp",
        old="      if (extent != 0 && array.size > limits_.bytes / extent) {\n",
        new="      if (array.size * extent > limits_.bytes) {\n",
        check=test("^torch-free: data/idx/idx$"),
    ),
    Fault(
        name="recipes-not-expanded",
        breaks="A recipe among the policies of a recipe stays one element of it.",
        file="include/frugal/recipes.hpp",
        old="recipe_of<flatten<typename Ts::type...>>",
        new="recipe_of<list<typename Ts::type...>>",
        check=test("^torch-free: recipes/recipes$"),
    ),
    Fault(
        name="last-word-without-lock",
        breaks="A worker's thread says without the lock that it has ended.",
        file="include/frugal/data/loading/pool.hpp",
        old="      std::unique_lock const lock(all_.mutex);\n      if (hand_.busy) {\n",
        new="      if (hand_.busy) {\n",
        check=stage("thread"),
    ),
    Fault(
        name="pause-without-lock",
        breaks="The workers are told to pause before the lock is held.",
        file="include/frugal/data/loading/pool.hpp",
        old="    std::unique_lock lock(state_->mutex);\n    state_->paused = true;\n",
        new="    state_->paused = true;\n    std::unique_lock lock(state_->mutex);\n",
        check=stage("thread"),
    ),
    Fault(
        name="no-wait-for-the-copy",
        breaks="The stream that computes does not wait for the copy of its batch.",
        file="include/frugal/core/libtorch/side_stream.hpp",
        old="    staging_.let_wait(computes(), turn);\n",
        new="    staging_.let_wait(stream_, turn);\n",
        check=test("^device: copied_ahead$"),
    ),
    Fault(
        name="copy-overtakes-the-step",
        breaks="A batch is copied into memory that a kernel of an earlier step still reads.",
        file="include/frugal/core/libtorch/side_stream.hpp",
        old="    if (is_used_) used_.block(copies);\n",
        new="    if (is_used_ && copies.id() < 0) used_.block(copies);\n",
        check=test("^device: copied_ahead$"),
    ),
    Fault(
        name="offloaded-memory-given-away",
        breaks="The allocator gives an activation's memory away while it is copied to the host.",
        file="include/frugal/core/libtorch/offload.hpp",
        old="      departing_.front().copied.block(computes());\n",
        new="",
        check=test("^device: offload$"),
    ),
    Fault(
        name="generator-by-number",
        breaks="A checkpoint of cuda:0 is not taken up on cuda:1.",
        file="include/frugal/core/libtorch/generators.hpp",
        old="    all.emplace_back(kind_of_device(device), context",
        new="    all.emplace_back(device.str(), context",
        check=test("^device: resume$"),
    ),
    Fault(
        name="seed-of-a-failed-capture",
        breaks="Backward goes on from a tensor that a failed capture was to fill.",
        file="include/frugal/core/loop/window.hpp",
        old="    ~OwnSeed() { window_.cached_ = at::Tensor(); }\n",
        new="",
        check=test("^policy: cuda_graph$"),
    ),
    Fault(
        name="losses-fill-the-device",
        breaks="An epoch's losses lie on the device one by one, 512 bytes each.",
        file="include/frugal/core/run/packed_scalars.hpp",
        old="    if (single_.size() == a_chunk) pack();\n",
        new="",
        check=test("^core/run: (ledger|packed_scalars)$"),
    ),
    Fault(
        name="overflow-counts-as-first",
        breaks="An overflow in FP16's first step on a device counts as SGD's first step.",
        file="include/frugal/policy/optimize/fused_bucket.hpp",
        old="    } else if (flag && !counters_.all_surely_begun()) {",
        new="    } else if (flag && false) {",
        check=test("^policy: optimize/fused_bucket$"),
    ),
    Fault(
        name="snapshot-not-finished",
        breaks="A snapshot lacks the copies of tensors that it sees for the first time on a device.",
        file="include/frugal/core/state/snapshot.hpp",
        old="    writer.finish();\n    forget(module);\n",
        new="    forget(module);\n",
        check=test("^device: resume$"),
    ),
    # ---- the loop -------------------------------------------------------------------------------
    Fault(
        name="ragged-window-not-corrected",
        breaks="A window of fewer micro-batches than usual makes a step that is too short.",
        file="include/frugal/core/loop/window.hpp",
        old="    if (all == unit || all == 0 || gradients.empty()) return;\n",
        new="    if (all <= unit || all == 0 || gradients.empty()) return;\n",
        check=test("^(core/loop: window|policy: accumulate)$"),
    ),
    Fault(
        name="counter-not-saved",
        breaks="A resumed run does not know that its last window was skipped.",
        file="include/frugal/core/run/counters.hpp",
        old='    archive("window_skipped", window_skipped);\n',
        new="",
        check=test("^torch-free: core/run/counters$"),
    ),
    Fault(
        name="generators-not-put-back",
        breaks="Rollback puts the weights back, and not the random numbers that dropout draws.",
        file="include/frugal/core/state/snapshot.hpp",
        old="      detail::persist_generators(reader, into.settings.device);\n",
        new="",
        check=test("^policy: rollback$"),
    ),
    # ---- policies -------------------------------------------------------------------------------
    Fault(
        name="decay-not-decoupled",
        breaks="AdamW adds its weight decay to the gradient, as Adam does.",
        file="include/frugal/policy/optimize/adam.hpp",
        old="      at::_fused_adamw_(std::forward<decltype(arguments)>(arguments)...);\n",
        new="      at::_fused_adam_(std::forward<decltype(arguments)>(arguments)...);\n",
        check=test("^policy: optimize/adam$"),
    ),
    Fault(
        name="clip-that-amplifies",
        breaks="On a device ClipNorm scales gradients that are below the limit up to it.",
        file="include/frugal/policy/clip/norm.hpp",
        old="at::reciprocal(norm + tiny_norm).mul_(limit).clamp_max_(1.0));",
        new="at::reciprocal(norm + tiny_norm).mul_(limit));",
        check=test("^policy: cuda_graph$"),
    ),
    Fault(
        name="growth-not-resumed",
        breaks="A resumed FP16 run counts its good steps from 0 and raises the loss scale later.",
        file="include/frugal/policy/precision/loss_scale.hpp",
        old="    good_steps_.fill_(good_steps);\n",
        new="",
        check=test("^policy: precision/fp16$"),
    ),
    Fault(
        name="patience-off-by-one",
        breaks="EarlyStop waits for one validation more than its patience.",
        file="include/frugal/policy/early_stop.hpp",
        old="return ++since_ < Limit::validations ? flow::proceed : flow::stop;",
        new="return ++since_ <= Limit::validations ? flow::proceed : flow::stop;",
        check=test("^policy: early_stop$"),
    ),
    Fault(
        name="another-window-skipped",
        breaks="Rollback passes over the window after the one that broke the run.",
        file="include/frugal/policy/rollback.hpp",
        old="      bad_.add(error.window.epoch, error.window.position);\n",
        new="      bad_.add(error.window.epoch, error.window.position + 1);\n",
        check=test("^policy: rollback$"),
    ),
    Fault(
        name="log-not-cut",
        breaks="The log of a resumed run has the lines of the lost stretch twice.",
        file="include/frugal/report/log.hpp",
        old="      cut_to_ = std::move(place);\n",
        new="",
        check=test("^policy: checkpoint/saver$"),
    ),
    Fault(
        name="second-signal-kills",
        breaks="A second SIGTERM, between the save and the end of the process, takes exit code 75 away.",
        file="include/frugal/policy/spot.hpp",
        old="      if (on_preemption_ == Preempted::Exit) signals_.keep();\n",
        new="",
        check=test("^policy: spot$"),
    ),
    Fault(
        name="second-signal-kills-behind-fit",
        breaks="A second SIGTERM, between fit's return and main's end, takes exit code 75 away.",
        file="include/frugal/policy/spot.hpp",
        old="      if (on_preemption_ == Preempted::Return && preemption_pending()) signals_.next_ends();\n",
        new="",
        check=test("^policy: spot$"),
    ),
    Fault(
        name="second-interrupt-waits",
        breaks="A second Ctrl-C waits for the save like the first.",
        file="include/frugal/policy/checkpoint/interrupt.hpp",
        old="    if (flag().exchange(1) != 0) ::_exit(130);\n",
        new="    if (flag().exchange(1) != 0) return;\n",
        check=test("^policy: checkpoint/interrupt$"),
    ),
    Fault(
        name="first-weights-are-the-best",
        breaks="EarlyStop restores the weights of the first validation.",
        file="include/frugal/policy/early_stop.hpp",
        old="if (first || Metric::improves(value, best_weights_.value(), min_delta_)) {",
        new="if (first) {",
        check=test("^policy: early_stop$"),
    ),
    Fault(
        name="good-state-of-another-recipe",
        breaks="Rollback goes back to a state that another recipe has kept.",
        file="include/frugal/policy/rollback.hpp",
        old="      if (archive.recipe_changed) kept_step_ = nothing;\n",
        new="",
        check=test("^policy: checkpoint/changed_recipe$"),
    ),
    Fault(
        name="failed-save-counts",
        breaks="A save that failed in the background is taken for one: what asks for a save is told it is there.",
        file="include/frugal/policy/checkpoint/saver.hpp",
        old="    saved_.reset();\n    tolerate_failure(run,",
        new="    tolerate_failure(run,",
        check=test("^policy: checkpoint/saver$"),
    ),
    Fault(
        name="returns-again",
        breaks="A run that has returned to an older checkpoint does so at each start, and loses what it has made.",
        file="include/frugal/policy/checkpoint/saver.hpp",
        old="    if (!start.returned_to.empty()) returned_to_ = start.returned_to;\n",
        new="",
        check=test("^policy: checkpoint/start$"),
    ),
    Fault(
        name="metrics-of-another-average",
        breaks="A checkpoint has the metrics of an average that has changed since.",
        file="include/frugal/core/run/run_state.hpp",
        old="judged.micro_batch == counters.micro_batch &&\n           judged.averaged == averaged;",
        new="judged.micro_batch == counters.micro_batch;",
        check=test("^policy: average$"),
    ),
    Fault(
        name="snapshot-overwritten",
        breaks="The next snapshot is taken into the memory that the background thread still writes from.",
        file="include/frugal/policy/checkpoint/saver.hpp",
        old="      writer_->wait();  // the snapshot is still being written from\n",
        new="",
        check=test("^policy: checkpoint/saver$"),
    ),
    Fault(
        name="other-dropout-in-backward",
        breaks="A recomputed function draws other random numbers than in its forward pass.",
        file="include/frugal/core/libtorch/recompute/surroundings.hpp",
        old="      set_state_of_generator(generator, each.state);\n",
        new="",
        check=test("^policy: recompute$"),
    ),
    Fault(
        name="graph-of-another-type",
        breaks="Batches of the captured shape and another element type are replayed, and rounded.",
        file="include/frugal/policy/cuda_graph/shapes.hpp",
        old="      numbers_.push_back(static_cast<std::int64_t>(tensor.scalar_type()));\n",
        new="",
        check=test("^policy: cuda_graph$"),
    ),
    # ---- data -----------------------------------------------------------------------------------
    Fault(
        name="damaged-sample-is-served",
        breaks="A cache gives bytes that do not have their hash.",
        file="include/frugal/data/cache/cache_store.hpp",
        old="      if (good) return bytes;\n",
        new="      return bytes;\n",
        check=test("^torch-free: data/cache/cache_store$"),
    ),
    Fault(
        name="damaged-block-is-read",
        breaks="Records of a block that does not have its hash are given.",
        file="include/frugal/data/shards/record_file.hpp",
        old="    if (state.load(std::memory_order_relaxed) != damaged && Hash::of(bytes) == expected) return;\n",
        new="    if (state.load(std::memory_order_relaxed) != damaged && Hash::of(bytes) != 0) return;\n",
        check=test("^torch-free: data/shards/record_file$"),
    ),
    Fault(
        name="samples-between-ranks",
        breaks="A batch that the ranks do not share evenly loses its last samples.",
        file="include/frugal/data/sampling/shared.hpp",
        old="    return {all.first + begin, all.count * (rank_ + 1) / world_ - begin};\n",
        new="    return {all.first + begin, all.count / world_};\n",
        check=test("data/sampling/shared$"),
    ),
    Fault(
        name="shards-in-one-order",
        breaks="Shards come in the order of the first epoch in every epoch.",
        file="include/frugal/data/shards/shard_order.hpp",
        old="    if (cursor.seed == cursor_.seed && cursor.epoch == cursor_.epoch) return;\n",
        new="    if (cursor.seed == cursor_.seed) return;\n",
        check=test("data/shards/shard_order$"),
    ),
    Fault(
        name="candidates-are-duplicates",
        breaks="Candidates of MinHash are removed without a look at how alike they are.",
        file="include/frugal/data/curate/deduplicator.hpp",
        old="      if (similar[i] < settings_.threshold || !groups_.join(batch[i].a, batch[i].b)) continue;\n",
        new="      if (!groups_.join(batch[i].a, batch[i].b)) continue;\n",
        check=test("^torch-free: data/curate/deduplicate$"),
    ),
    Fault(
        name="biased-importance",
        breaks="Samples that are drawn more often than others count as much as they.",
        file="include/frugal/policy/importance/objective.hpp",
        old="(samples.losses_B * batch.weight_B).mean()",
        new="samples.losses_B.mean()",
        check=test("^policy: importance$"),
    ),
    # ---- results that would be wrong without a word ---------------------------------------------
    Fault(
        name="window-not-compared",
        breaks="A resume with another shuffle window trains on some samples twice and on others never.",
        file="include/frugal/data/shards/shard_order.hpp",
        old="""    to.add("window", window_.samples != 0 ? std::to_string(window_.samples) + " samples"
                                          : std::to_string(window_.shards) + " shards");
""",
        new="",
        check=test("^policy: checkpoint/same_samples$"),
    ),
    Fault(
        name="validation-not-compared",
        breaks="The best checkpoint on other validation data stays the best.",
        file="include/frugal/core/loop/fit_operations.hpp",
        old="    if constexpr (!std::is_void_v<Valid>) identify_validation(valid_, all);\n",
        new="",
        check=test("^policy: checkpoint/changed_data$"),
    ),
    Fault(
        name="trained-weights-for-validated",
        breaks="The weights of a checkpoint are the trained ones, although the averages were validated.",
        file="include/frugal/policy/average.hpp",
        old="run_->averaged = validate_ ? taken : 0;",
        new="run_->averaged = 0 * taken;",
        check=test("^policy: average$"),
    ),
    Fault(
        name="nan-in-a-checkpoint",
        breaks="A checkpoint is sealed with weights that are not finite.",
        file="include/frugal/policy/checkpoint/snapshot.hpp",
        old="    auto const bad = finite_.first_bad(state_.module, state_.run);\n    if (!bad) return;\n",
        new="    auto const bad = finite_.first_bad(state_.module, state_.run);\n    if (!bad || true) return;\n",
        check=test("^policy: checkpoint/saver$"),
    ),
    Fault(
        name="nan-is-resumed",
        breaks="A resume takes a checkpoint whose weights are not finite.",
        file="include/frugal/policy/checkpoint/saver.hpp",
        old="    NewestValid newest = directory_->newest_valid([this](SavedCheckpoint const& checkpoint) {\n"
        "      return first_bad_in(checkpoint, snapshot_.finite());\n",
        new="    NewestValid newest = directory_->newest_valid([](SavedCheckpoint const&) {\n"
        "      return std::string();\n",
        check=test("^policy: checkpoint/resume$"),
    ),
    Fault(
        name="nan-is-a-good-state",
        breaks="Rollback keeps weights that are not finite as a good state.",
        file="include/frugal/policy/rollback.hpp",
        old="    require_finite(phase, window);\n    good_.copy(",
        new="    first_bad(phase, Part::resumable);\n    good_.copy(",
        check=test("^policy: rollback$"),
    ),
    Fault(
        name="nan-window-not-skipped",
        breaks="SkipNonFinite takes gradients that are not finite for finite ones.",
        file="include/frugal/policy/skip_non_finite.hpp",
        old="detail::first_non_finite(gradients) ? 1.0F : 0.0F;",
        new="detail::first_non_finite(gradients) ? 0.0F : 0.0F;",
        check=test("^policy: skip_non_finite$"),
    ),
    Fault(
        name="nan-logit-is-right",
        breaks="A prediction is right although one of its logits is NaN.",
        file="include/frugal/metrics/decisions.hpp",
        old="  return at::where(score.isnan(), labels.add(1).remainder_(classes), predicted);\n",
        new="  return at::where(score.isnan(), labels.remainder(classes), predicted);\n",
        check=test("^metrics: accuracy$"),
    ),
    Fault(
        name="seed-above-one",
        breaks="A heavy micro-batch after a light one starts backward from more than 1, and FP16 overflows.",
        file="include/frugal/core/loop/window.hpp",
        old="    while (unit_ < full) unit_ *= 2;\n",
        new="    unit_ *= 1;\n",
        check=test("^core/loop: window$"),
    ),
    Fault(
        name="generators-kept",
        breaks="A fit leaves LibTorch's generators where its last step was.",
        file="include/frugal/core/loop/call_in_progress.hpp",
        old="      generators_->restore();\n",
        new="      static_cast<void>(generators_);\n",
        check=test("^core/loop: call_in_progress$"),
    ),
    Fault(
        name="another-file-is-read",
        breaks="A shard that was replaced under the run is read on.",
        file="include/frugal/data/shards/open_files.hpp",
        old="    if (now == then) return;\n",
        new="    if (now.size == then.size) return;\n",
        check=test("^torch-free: data/shards/open_files$"),
    ),
    # ---- plan -----------------------------------------------------------------------------------
    Fault(
        name="free-restarts",
        breaks="The expected time on machines that vanish leaves out the restarts.",
        file="include/frugal/checkpoint/checkpoint_interval.hpp",
        old="  return lifetime * std::exp(failures.restart / lifetime) *\n",
        new="  return lifetime *\n",
        check=test("^torch-free: checkpoint/checkpoint_interval$"),
    ),
    Fault(
        name="negative-price",
        breaks="A negative price of a price file is a price.",
        file="include/frugal/report/plan/price_file.hpp",
        old="    if (value < 0)\n",
        new="    if (value < -1e9)\n",
        check=test("^torch-free: report/plan/price_file$"),
    ),
    Fault(
        name="overlap-earns-time",
        breaks="Communication that is shorter than the overlap makes a step faster than it is.",
        file="include/frugal/report/plan/all_reduce.hpp",
        old="out.exposed = std::max(Seconds(0), out.communication - job.overlap * out.compute);",
        new="out.exposed = out.communication - job.overlap * out.compute;",
        check=test("^torch-free: report/plan/all_reduce$"),
    ),
    # ---- the model --------------------------------------------------------------------------------
    Fault(
        name="part-of-a-weight-is-a-layer",
        breaks="A product with some rows of an intercepted weight is taken for its layer.",
        file="include/frugal/core/libtorch/interception.hpp",
        old="    bool const whole = weight.dim() == 2 && weight.is_same_size(factor.t()) &&",
        new="    bool const whole = weight.dim() == 2 &&",
        check=test("^core/libtorch: interception$"),
    ),
    Fault(
        name="fixed-tensors-are-saved",
        breaks="Checkpoints have the frozen parameters as well.",
        file="include/frugal/core/state/module_tensors.hpp",
        old="    if (!is_fixed(tensor)) archive(name, tensor);",
        new="    archive(name, tensor);",
        check=test("^model: freeze$"),
    ),
    Fault(
        name="another-base-is-resumed",
        breaks="A run resumes over other frozen weights than those that it began with.",
        file="include/frugal/core/run/fixed_identity.hpp",
        old="    if (saved == here) return;",
        new="    if (saved.empty() == here.empty()) return;",
        check=test("^model: lora$"),
    ),
    Fault(
        name="frozen-statistics-move",
        breaks="BatchNorm layers that are frozen go on counting their statistics.",
        file="include/frugal/model/freeze.hpp",
        old="      if (phase.training) statistics_.hold();",
        new="      if (!phase.training) statistics_.hold();",
        check=test("^model: freeze$"),
    ),
    Fault(
        name="unfrozen-by-steps-since-resume",
        breaks="A resumed run begins with everything frozen.",
        file="include/frugal/model/unfreeze.hpp",
        old="      if (wanted != unfrozen_) [[unlikely]]\n        apply(phase, wanted);",
        new="      if (wanted < unfrozen_) [[unlikely]]\n        apply(phase, wanted);",
        check=test("^model: freeze$"),
    ),
    Fault(
        name="rank-stabilised-by-the-rank",
        breaks="rsLoRA scales by the rank and not by its root.",
        file="include/frugal/model/lora/adapter.hpp",
        old="settings_.rank_stabilised ? std::sqrt(rank) : rank",
        new="settings_.rank_stabilised ? rank : rank",
        check=test("^model: lora$"),
    ),
    Fault(
        name="four-bits-swapped",
        breaks="The two weights of a byte change places.",
        file="include/frugal/model/lora/nf4.hpp",
        old="        all[i] = {detail::nf4_values[i >> 4], detail::nf4_values[i & 15]};",
        new="        all[i] = {detail::nf4_values[i & 15], detail::nf4_values[i >> 4]};",
        check=test("^model: lora/nf4$"),
    ),
    # ---- parameter groups, fields, peaks of memory ------------------------------------------------
    Fault(
        name="last-factor-counts",
        breaks="Of several rules that multiply a parameter's rate only the last one does.",
        file="include/frugal/policy/optimize/group_settings.hpp",
        old="      factors_[i].lr *= factors[i].factor;",
        new="      factors_[i].lr = factors[i].factor;",
        check=test("^policy: optimize/group_settings$"),
    ),
    Fault(
        name="group-schedule-a-step-early",
        breaks="A group's schedule is one step ahead of the recipe's.",
        file="include/frugal/policy/optimize/fused.hpp",
        old="schedules_.factors(phase.counters().step);",
        new="schedules_.factors(phase.counters().step + 1);",
        check=test("^policy: optimize/group_settings$"),
    ),
    Fault(
        name="betas-are-the-optimizers",
        breaks="A group's own betas have no effect.",
        file="include/frugal/policy/optimize/fused.hpp",
        old="    rule.beta1 = *own.beta1;",
        new="    rule.beta1 = rule.beta1;",
        check=test("^policy: optimize/group_settings$"),
    ),
    Fault(
        name="decay-between-head-and-layers-twice",
        breaks="Layer-wise rates have one more factor between the head and the last layer.",
        file="include/frugal/policy/optimize/layer_wise.hpp",
        old="static_cast<double>(depth + 1 - at))",
        new="static_cast<double>(at > depth ? 0 : depth + 2 - at))",
        check=test("^policy: optimize/layer_wise$"),
    ),
    Fault(
        name="mask-of-another-length",
        breaks="An attention mask shorter than its text is padded without a word.",
        file="include/frugal/data/pad.hpp",
        old="    if (row.size(0) == data.size(0)) return;",
        new="    if (row.size(0) <= data.size(0)) return;",
        check=test("^data: pad$"),
    ),
    Fault(
        name="fields-stay-behind",
        breaks="A padded batch moves to a device, and is split, without its fields.",
        file="include/frugal/data/padded.hpp",
        old="f(data, target, mask, fields); }",
        new="f(data, target, mask); }",
        check=test("^data: pad$"),
    ),
    Fault(
        name="peak-of-before-the-fit",
        breaks="A report takes an earlier peak of the process for the fit's own.",
        file="include/frugal/core/run/memory_peaks.hpp",
        old="*peaks.process > *peak_before_ &&",
        new="*peaks.process >= *peak_before_ &&",
        check=test("^core/run: memory_peaks$"),
    ),
)
