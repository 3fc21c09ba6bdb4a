// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// Written by tests/docs/options.py from the tables of options on the pages: python3 tests/docs/check.py fill .
// clang-format off
namespace frugal::detail {

/// Calls `visit(name, member)` for each member of an object that a page lists.
template <class Object, class Visit>
void each_page_option(Object& object, Visit&& visit) {
  if constexpr (requires { object.address; }) visit("address", object.address);
  if constexpr (requires { object.allow_misshapen; }) visit("allow_misshapen", object.allow_misshapen);
  if constexpr (requires { object.allow_missing; }) visit("allow_missing", object.allow_missing);
  if constexpr (requires { object.allow_unexpected; }) visit("allow_unexpected", object.allow_unexpected);
  if constexpr (requires { object.alpha; }) visit("alpha", object.alpha);
  if constexpr (requires { object.amsgrad; }) visit("amsgrad", object.amsgrad);
  if constexpr (requires { object.at_end; }) visit("at_end", object.at_end);
  if constexpr (requires { object.at_most; }) visit("at_most", object.at_most);
  if constexpr (requires { object.attention; }) visit("attention", object.attention);
  if constexpr (requires { object.autocast; }) visit("autocast", object.autocast);
  if constexpr (requires { object.averaging; }) visit("averaging", object.averaging);
  if constexpr (requires { object.backend; }) visit("backend", object.backend);
  if constexpr (requires { object.backoff; }) visit("backoff", object.backoff);
  if constexpr (requires { object.batch; }) visit("batch", object.batch);
  if constexpr (requires { object.batches; }) visit("batches", object.batches);
  if constexpr (requires { object.beta1; }) visit("beta1", object.beta1);
  if constexpr (requires { object.beta2; }) visit("beta2", object.beta2);
  if constexpr (requires { object.bf16; }) visit("bf16", object.bf16);
  if constexpr (requires { object.blank; }) visit("blank", object.blank);
  if constexpr (requires { object.bucket; }) visit("bucket", object.bucket);
  if constexpr (requires { object.by_magnitude; }) visit("by_magnitude", object.by_magnitude);
  if constexpr (requires { object.call; }) visit("call", object.call);
  if constexpr (requires { object.changed_data; }) visit("changed_data", object.changed_data);
  if constexpr (requires { object.changed_recipe; }) visit("changed_recipe", object.changed_recipe);
  if constexpr (requires { object.chunks; }) visit("chunks", object.chunks);
  if constexpr (requires { object.class_weights; }) visit("class_weights", object.class_weights);
  if constexpr (requires { object.command; }) visit("command", object.command);
  if constexpr (requires { object.cooldown; }) visit("cooldown", object.cooldown);
  if constexpr (requires { object.copies; }) visit("copies", object.copies);
  if constexpr (requires { object.counts_on_device; }) visit("counts_on_device", object.counts_on_device);
  if constexpr (requires { object.currency; }) visit("currency", object.currency);
  if constexpr (requires { object.dampening; }) visit("dampening", object.dampening);
  if constexpr (requires { object.decay; }) visit("decay", object.decay);
  if constexpr (requires { object.delivery; }) visit("delivery", object.delivery);
  if constexpr (requires { object.delta; }) visit("delta", object.delta);
  if constexpr (requires { object.depth; }) visit("depth", object.depth);
  if constexpr (requires { object.device; }) visit("device", object.device);
  if constexpr (requires { object.devices; }) visit("devices", object.devices);
  if constexpr (requires { object.dropout; }) visit("dropout", object.dropout);
  if constexpr (requires { object.dynamic_batch; }) visit("dynamic_batch", object.dynamic_batch);
  if constexpr (requires { object.energy; }) visit("energy", object.energy);
  if constexpr (requires { object.epochs; }) visit("epochs", object.epochs);
  if constexpr (requires { object.eps; }) visit("eps", object.eps);
  if constexpr (requires { object.error_feedback; }) visit("error_feedback", object.error_feedback);
  if constexpr (requires { object.every; }) visit("every", object.every);
  if constexpr (requires { object.except; }) visit("except", object.except);
  if constexpr (requires { object.experiment; }) visit("experiment", object.experiment);
  if constexpr (requires { object.factor; }) visit("factor", object.factor);
  if constexpr (requires { object.file; }) visit("file", object.file);
  if constexpr (requires { object.first; }) visit("first", object.first);
  if constexpr (requires { object.floor; }) visit("floor", object.floor);
  if constexpr (requires { object.folder; }) visit("folder", object.folder);
  if constexpr (requires { object.fraction; }) visit("fraction", object.fraction);
  if constexpr (requires { object.from; }) visit("from", object.from);
  if constexpr (requires { object.gamma; }) visit("gamma", object.gamma);
  if constexpr (requires { object.generators; }) visit("generators", object.generators);
  if constexpr (requires { object.grace; }) visit("grace", object.grace);
  if constexpr (requires { object.grace_epochs; }) visit("grace_epochs", object.grace_epochs);
  if constexpr (requires { object.gradients; }) visit("gradients", object.gradients);
  if constexpr (requires { object.gradients_every; }) visit("gradients_every", object.gradients_every);
  if constexpr (requires { object.groups; }) visit("groups", object.groups);
  if constexpr (requires { object.growth; }) visit("growth", object.growth);
  if constexpr (requires { object.growth_interval; }) visit("growth_interval", object.growth_interval);
  if constexpr (requires { object.headers; }) visit("headers", object.headers);
  if constexpr (requires { object.hidden; }) visit("hidden", object.hidden);
  if constexpr (requires { object.hysteresis; }) visit("hysteresis", object.hysteresis);
  if constexpr (requires { object.idle; }) visit("idle", object.idle);
  if constexpr (requires { object.initial; }) visit("initial", object.initial);
  if constexpr (requires { object.initial_accumulator; }) visit("initial_accumulator", object.initial_accumulator);
  if constexpr (requires { object.interval; }) visit("interval", object.interval);
  if constexpr (requires { object.jump; }) visit("jump", object.jump);
  if constexpr (requires { object.keep; }) visit("keep", object.keep);
  if constexpr (requires { object.keep_best; }) visit("keep_best", object.keep_best);
  if constexpr (requires { object.keep_every; }) visit("keep_every", object.keep_every);
  if constexpr (requires { object.kg_co2_per_kilowatt_hour; }) visit("kg_co2_per_kilowatt_hour", object.kg_co2_per_kilowatt_hour);
  if constexpr (requires { object.label_smoothing; }) visit("label_smoothing", object.label_smoothing);
  if constexpr (requires { object.labels; }) visit("labels", object.labels);
  if constexpr (requires { object.last_bucket; }) visit("last_bucket", object.last_bucket);
  if constexpr (requires { object.layers; }) visit("layers", object.layers);
  if constexpr (requires { object.least; }) visit("least", object.least);
  if constexpr (requires { object.least_busy; }) visit("least_busy", object.least_busy);
  if constexpr (requires { object.length; }) visit("length", object.length);
  if constexpr (requires { object.levels; }) visit("levels", object.levels);
  if constexpr (requires { object.limit; }) visit("limit", object.limit);
  if constexpr (requires { object.line_seconds; }) visit("line_seconds", object.line_seconds);
  if constexpr (requires { object.link; }) visit("link", object.link);
  if constexpr (requires { object.listening; }) visit("listening", object.listening);
  if constexpr (requires { object.local_steps; }) visit("local_steps", object.local_steps);
  if constexpr (requires { object.login; }) visit("login", object.login);
  if constexpr (requires { object.longest_pause; }) visit("longest_pause", object.longest_pause);
  if constexpr (requires { object.look; }) visit("look", object.look);
  if constexpr (requires { object.low_rank; }) visit("low_rank", object.low_rank);
  if constexpr (requires { object.lr; }) visit("lr", object.lr);
  if constexpr (requires { object.lr_decay; }) visit("lr_decay", object.lr_decay);
  if constexpr (requires { object.machine_lifetime; }) visit("machine_lifetime", object.machine_lifetime);
  if constexpr (requires { object.margin; }) visit("margin", object.margin);
  if constexpr (requires { object.max_norm; }) visit("max_norm", object.max_norm);
  if constexpr (requires { object.max_value; }) visit("max_value", object.max_value);
  if constexpr (requires { object.maximize; }) visit("maximize", object.maximize);
  if constexpr (requires { object.memory; }) visit("memory", object.memory);
  if constexpr (requires { object.metric; }) visit("metric", object.metric);
  if constexpr (requires { object.metrics; }) visit("metrics", object.metrics);
  if constexpr (requires { object.micro_batch; }) visit("micro_batch", object.micro_batch);
  if constexpr (requires { object.micro_batches; }) visit("micro_batches", object.micro_batches);
  if constexpr (requires { object.milestones; }) visit("milestones", object.milestones);
  if constexpr (requires { object.min_compression_rate; }) visit("min_compression_rate", object.min_compression_rate);
  if constexpr (requires { object.min_delta; }) visit("min_delta", object.min_delta);
  if constexpr (requires { object.min_factor; }) visit("min_factor", object.min_factor);
  if constexpr (requires { object.momentum; }) visit("momentum", object.momentum);
  if constexpr (requires { object.most; }) visit("most", object.most);
  if constexpr (requires { object.most_captures; }) visit("most_captures", object.most_captures);
  if constexpr (requires { object.most_skips; }) visit("most_skips", object.most_skips);
  if constexpr (requires { object.most_waiting; }) visit("most_waiting", object.most_waiting);
  if constexpr (requires { object.name; }) visit("name", object.name);
  if constexpr (requires { object.nesterov; }) visit("nesterov", object.nesterov);
  if constexpr (requires { object.nodes; }) visit("nodes", object.nodes);
  if constexpr (requires { object.notices; }) visit("notices", object.notices);
  if constexpr (requires { object.offer; }) visit("offer", object.offer);
  if constexpr (requires { object.on_failure; }) visit("on_failure", object.on_failure);
  if constexpr (requires { object.on_interrupt; }) visit("on_interrupt", object.on_interrupt);
  if constexpr (requires { object.on_newer; }) visit("on_newer", object.on_newer);
  if constexpr (requires { object.on_preemption; }) visit("on_preemption", object.on_preemption);
  if constexpr (requires { object.only; }) visit("only", object.only);
  if constexpr (requires { object.orthogonalization_epsilon; }) visit("orthogonalization_epsilon", object.orthogonalization_epsilon);
  if constexpr (requires { object.other_per_hour; }) visit("other_per_hour", object.other_per_hour);
  if constexpr (requires { object.out; }) visit("out", object.out);
  if constexpr (requires { object.outcome; }) visit("outcome", object.outcome);
  if constexpr (requires { object.outer; }) visit("outer", object.outer);
  if constexpr (requires { object.p; }) visit("p", object.p);
  if constexpr (requires { object.parts; }) visit("parts", object.parts);
  if constexpr (requires { object.path; }) visit("path", object.path);
  if constexpr (requires { object.patience; }) visit("patience", object.patience);
  if constexpr (requires { object.peak_flops; }) visit("peak_flops", object.peak_flops);
  if constexpr (requires { object.percent; }) visit("percent", object.percent);
  if constexpr (requires { object.plain; }) visit("plain", object.plain);
  if constexpr (requires { object.polling; }) visit("polling", object.polling);
  if constexpr (requires { object.port; }) visit("port", object.port);
  if constexpr (requires { object.positive_weights; }) visit("positive_weights", object.positive_weights);
  if constexpr (requires { object.power; }) visit("power", object.power);
  if constexpr (requires { object.power_sgd; }) visit("power_sgd", object.power_sgd);
  if constexpr (requires { object.prefix; }) visit("prefix", object.prefix);
  if constexpr (requires { object.price; }) visit("price", object.price);
  if constexpr (requires { object.price_per_kilowatt_hour; }) visit("price_per_kilowatt_hour", object.price_per_kilowatt_hour);
  if constexpr (requires { object.prices; }) visit("prices", object.prices);
  if constexpr (requires { object.projected; }) visit("projected", object.projected);
  if constexpr (requires { object.provider; }) visit("provider", object.provider);
  if constexpr (requires { object.rank; }) visit("rank", object.rank);
  if constexpr (requires { object.rare_pause; }) visit("rare_pause", object.rare_pause);
  if constexpr (requires { object.refresh; }) visit("refresh", object.refresh);
  if constexpr (requires { object.relative; }) visit("relative", object.relative);
  if constexpr (requires { object.rename; }) visit("rename", object.rename);
  if constexpr (requires { object.resize; }) visit("resize", object.resize);
  if constexpr (requires { object.rest; }) visit("rest", object.rest);
  if constexpr (requires { object.restore_best; }) visit("restore_best", object.restore_best);
  if constexpr (requires { object.resume; }) visit("resume", object.resume);
  if constexpr (requires { object.rewind; }) visit("rewind", object.rewind);
  if constexpr (requires { object.round_to; }) visit("round_to", object.round_to);
  if constexpr (requires { object.rounds; }) visit("rounds", object.rounds);
  if constexpr (requires { object.rule; }) visit("rule", object.rule);
  if constexpr (requires { object.run_dir; }) visit("run_dir", object.run_dir);
  if constexpr (requires { object.run_name; }) visit("run_name", object.run_name);
  if constexpr (requires { object.runs; }) visit("runs", object.runs);
  if constexpr (requires { object.samples; }) visit("samples", object.samples);
  if constexpr (requires { object.sanity_batches; }) visit("sanity_batches", object.sanity_batches);
  if constexpr (requires { object.saved_errors; }) visit("saved_errors", object.saved_errors);
  if constexpr (requires { object.scales; }) visit("scales", object.scales);
  if constexpr (requires { object.scaling; }) visit("scaling", object.scaling);
  if constexpr (requires { object.score; }) visit("score", object.score);
  if constexpr (requires { object.seed; }) visit("seed", object.seed);
  if constexpr (requires { object.segments; }) visit("segments", object.segments);
  if constexpr (requires { object.select; }) visit("select", object.select);
  if constexpr (requires { object.shard_bytes; }) visit("shard_bytes", object.shard_bytes);
  if constexpr (requires { object.shards_states; }) visit("shards_states", object.shards_states);
  if constexpr (requires { object.share; }) visit("share", object.share);
  if constexpr (requires { object.skips; }) visit("skips", object.skips);
  if constexpr (requires { object.slow_down; }) visit("slow_down", object.slow_down);
  if constexpr (requires { object.smallest_change; }) visit("smallest_change", object.smallest_change);
  if constexpr (requires { object.smooth; }) visit("smooth", object.smooth);
  if constexpr (requires { object.sparsity; }) visit("sparsity", object.sparsity);
  if constexpr (requires { object.spot; }) visit("spot", object.spot);
  if constexpr (requires { object.start_fresh; }) visit("start_fresh", object.start_fresh);
  if constexpr (requires { object.start_step; }) visit("start_step", object.start_step);
  if constexpr (requires { object.steps; }) visit("steps", object.steps);
  if constexpr (requires { object.subsampling; }) visit("subsampling", object.subsampling);
  if constexpr (requires { object.sum; }) visit("sum", object.sum);
  if constexpr (requires { object.swap; }) visit("swap", object.swap);
  if constexpr (requires { object.tags; }) visit("tags", object.tags);
  if constexpr (requires { object.target; }) visit("target", object.target);
  if constexpr (requires { object.target_is_below; }) visit("target_is_below", object.target_is_below);
  if constexpr (requires { object.teachers; }) visit("teachers", object.teachers);
  if constexpr (requires { object.temperature; }) visit("temperature", object.temperature);
  if constexpr (requires { object.texts; }) visit("texts", object.texts);
  if constexpr (requires { object.threshold; }) visit("threshold", object.threshold);
  if constexpr (requires { object.timeout; }) visit("timeout", object.timeout);
  if constexpr (requires { object.to; }) visit("to", object.to);
  if constexpr (requires { object.top_k; }) visit("top_k", object.top_k);
  if constexpr (requires { object.traces; }) visit("traces", object.traces);
  if constexpr (requires { object.transpose; }) visit("transpose", object.transpose);
  if constexpr (requires { object.type; }) visit("type", object.type);
  if constexpr (requires { object.until; }) visit("until", object.until);
  if constexpr (requires { object.update; }) visit("update", object.update);
  if constexpr (requires { object.uri; }) visit("uri", object.uri);
  if constexpr (requires { object.url; }) visit("url", object.url);
  if constexpr (requires { object.validate; }) visit("validate", object.validate);
  if constexpr (requires { object.value; }) visit("value", object.value);
  if constexpr (requires { object.values; }) visit("values", object.values);
  if constexpr (requires { object.warm_start; }) visit("warm_start", object.warm_start);
  if constexpr (requires { object.warm_up; }) visit("warm_up", object.warm_up);
  if constexpr (requires { object.warn; }) visit("warn", object.warn);
  if constexpr (requires { object.warn_after; }) visit("warn_after", object.warn_after);
  if constexpr (requires { object.webhook; }) visit("webhook", object.webhook);
  if constexpr (requires { object.weight; }) visit("weight", object.weight);
  if constexpr (requires { object.weight_decay; }) visit("weight_decay", object.weight_decay);
  if constexpr (requires { object.weights; }) visit("weights", object.weights);
  if constexpr (requires { object.weights_every; }) visit("weights_every", object.weights_every);
  if constexpr (requires { object.which; }) visit("which", object.which);
  if constexpr (requires { object.window; }) visit("window", object.window);
  if constexpr (requires { object.with; }) visit("with", object.with);
  if constexpr (requires { object.within; }) visit("within", object.within);
  if constexpr (requires { object.words; }) visit("words", object.words);
  if constexpr (requires { object.writer; }) visit("writer", object.writer);
  if constexpr (requires { object.zero_infinity; }) visit("zero_infinity", object.zero_infinity);
}

/// What a page says of a member: "EarlyStop.patience".
struct PageOption {
  std::string_view name;
  std::string_view effect;
};
inline constexpr PageOption page_options[] = {
    {"Accumulate.micro_batches", "micro-batches per optimizer step, given when the program runs; Accumulate<>{.micro_batches = 8} trains the bits of Accumulate<8>, and a checkpoint of one resumes in the other"},
    {"Accumulate.samples", "largest micro-batch; 0 is the whole batch"},
    {"AutoBatch.limit", "memory that training may use; required on the CPU, 0 on a device is all of it"},
    {"AutoBatch.look", "of this many first batches of the source, the one with most tokens is tried"},
    {"AutoBatch.margin", "memory that the largest trial step leaves free"},
    {"Average.at_end", "the weights in the module when the run has ended: validated, trained, averaged"},
    {"Average.rule.decay", "share of the average that each update keeps"},
    {"Average.rule.every", "when to update"},
    {"Average.validate", "validate the averaged weights once there are some"},
    {"BinaryCrossEntropy.class_weights", "PyTorch's weight: for each class of logits [B, C, ...], or one. The mean divides by the number of labels"},
    {"BinaryCrossEntropy.counts_on_device", "counts labels of -100 on a device; see masks"},
    {"BinaryCrossEntropy.positive_weights", "PyTorch's pos_weight, likewise: multiplies the loss of positives. Negatives over positives of a class makes both count alike"},
    {"Budget.command.delivery", "attempts, first_wait (0.5 s, then doubled), longest_wait (60 s), most_waiting (64), at_end (10 s; of a command 30 s)"},
    {"Budget.command.patience", "a program and its arguments"},
    {"Budget.command.words", "a program and its arguments"},
    {"Budget.hysteresis", "how far the spending must fall below a level before Budget warns of it again"},
    {"Budget.levels", "warn once at each share; a stop is always reported"},
    {"Budget.limit", "the budget: .limit = 0.5"},
    {"Budget.projected", "whether Budget warns of a projected overspend"},
    {"Budget.webhook.delivery", "attempts, first_wait (0.5 s, then doubled), longest_wait (60 s), most_waiting (64), at_end (10 s; of a command 30 s)"},
    {"Budget.webhook.headers", "http:// or https://"},
    {"Budget.webhook.timeout", "http:// or https://"},
    {"Budget.webhook.url", "http:// or https://"},
    {"BurnRate.command", "as of Budget"},
    {"BurnRate.hysteresis", "how far the rate must be below a level before BurnRate warns again"},
    {"BurnRate.levels", "warn when the rate reaches this share"},
    {"BurnRate.limit", ".limit = 2.75"},
    {"BurnRate.webhook", "as of Budget"},
    {"BurnRate.window", "time over which the rate is the mean"},
    {"Checkpoint.changed_data", "what of the data may differ"},
    {"Checkpoint.changed_recipe", "what to do with a checkpoint of another recipe: Refuse, KeepWhatFits"},
    {"Checkpoint.every", "when to save: Every<500> steps, Every<1, Epoch>, Every<600, Second>; also micro-batches, samples and tokens"},
    {"Checkpoint.from", "the checkpoint to begin with: a run directory or a checkpoint's folder; with Weights also a .safetensors file; empty: Settings::run_dir"},
    {"Checkpoint.keep", "keeps the newest N"},
    {"Checkpoint.keep_best", "also keeps the best N by a validated metric, and saves each improvement once, when it is measured; a NaN is never one. Of equal ones it keeps the newest, where EarlyStop restores the first. KeepBest<> keeps the best one by the loss. A recipe may have several"},
    {"Checkpoint.keep_every", "saves each step that is a multiple of N, whatever the cadence, and keeps these checkpoints for ever; a run that ends before step N is told so"},
    {"Checkpoint.machine_lifetime", "Every<Auto>: mean lifetime of a machine"},
    {"Checkpoint.on_failure", "if a save fails: Stop, Continue"},
    {"Checkpoint.on_interrupt", "what Ctrl-C does: Save, Terminate"},
    {"Checkpoint.on_newer", "if from is a checkpoint of this run and not the newest: Refuse, Remove"},
    {"Checkpoint.resume", "what to do with existing checkpoints: Exact, Weights, Never"},
    {"Checkpoint.share", "Every<Auto>: share of the time for saving"},
    {"Checkpoint.start_fresh", "with KeepWhatFits: kinds whose state is reset if it does not fit"},
    {"Checkpoint.weights", "with Weights: which ones of a checkpoint with averages: validated, trained, averaged"},
    {"ClipAdaptive.least", "lower bound of the weights' norm"},
    {"ClipAdaptive.share", "largest norm of a unit's gradient over that of its weights"},
    {"ClipAdaptive.skips", "a function of name and tensor; true leaves the parameter unclipped. The paper leaves out the last layer"},
    {"ClipNorm.max_norm", "largest total norm of all gradients"},
    {"ClipValue.max_value", "largest absolute value of an element"},
    {"Constant.steps", "its length in optimizer steps; to_end (0): what the other curves leave"},
    {"Constant.value", "the factor of the learning rate"},
    {"Contrastive.temperature", "divides the similarities"},
    {"CosineDecay.floor", "factor of the learning rate at the end of a cosine"},
    {"CosineDecay.steps", "its length in optimizer steps; to_end (0): what the other curves leave"},
    {"CosineRestarts.first", "optimizer steps of the first cosine"},
    {"CosineRestarts.floor", "factor of the learning rate at the end of a cosine"},
    {"CosineRestarts.growth", "each cosine is so many times as long as the one before"},
    {"CosineRestarts.steps", "its length in optimizer steps; to_end (0): what the other curves leave"},
    {"CostMeter.currency", "of price"},
    {"CostMeter.devices", "devices that are billed, at a price per device; nodes, at a price per node. An offer per node bills as many nodes as devices need"},
    {"CostMeter.energy", ".processors, .gpus, .devices, .interval_seconds (5), .powercap, .nvml"},
    {"CostMeter.idle", "billed before each start: boot, image, data"},
    {"CostMeter.kg_co2_per_kilowatt_hour", "grid factor; without it there is no carbon"},
    {"CostMeter.nodes", "devices that are billed, at a price per device; nodes, at a price per node. An offer per node bills as many nodes as devices need"},
    {"CostMeter.offer", "the name of a machine in the price file, or of a built-in example"},
    {"CostMeter.other_per_hour", "storage, network and the like"},
    {"CostMeter.price", "plan::PricePerDevice(2.5), or plan::PricePerNode(20); the two types do not mix"},
    {"CostMeter.price_per_kilowatt_hour", "electricity of a machine of your own"},
    {"CostMeter.prices", "a price file, which replaces the built-in examples"},
    {"CostMeter.refresh", "time between two sums"},
    {"CostMeter.spot", "the spot price of the offer"},
    {"CrossEntropy.class_weights", "PyTorch's weight: a weight for each of C classes. The mean divides by the sum of the weights"},
    {"CrossEntropy.counts_on_device", "counts labels of -100 on a device; see masks"},
    {"CrossEntropy.label_smoothing", "share of a label that is spread over all classes"},
    {"Csv.every", "when a step writes rows; Every<1, Epoch> writes none for steps"},
    {"Csv.path", "the file, appended to except after a resume"},
    {"Ctc.blank", "the class of no label"},
    {"Ctc.subsampling", "positions of a PaddedBatch's data for one of the output"},
    {"Ctc.zero_infinity", "infinite losses, of samples with fewer positions than their labels need, count as 0"},
    {"CudaGraph.backend", "settings of a user-defined backend"},
    {"CudaGraph.generators", "generators that the module or the objective draws from, besides the device's own"},
    {"CudaGraph.most_captures", "captures for other shapes; the last one is kept"},
    {"CudaGraph.warm_up", "eager windows before a capture, on a side stream"},
    {"Curriculum.score", "the score, if it has settings"},
    {"DevicePrefetch.depth", "batches on the device at a time: the current one and those being copied"},
    {"DiceLoss.counts_on_device", "as above"},
    {"DiceLoss.smooth", "added above and below: a class without labels and without probability has loss 0"},
    {"Distill.alpha", "share of the teachers in the loss, from 0 to 1"},
    {"Distill.attention", "pairs of attention maps: AttentionMaps{.student, .teacher, .weight, .number, .heads, .causal}"},
    {"Distill.hidden", "pairs of layers whose outputs shall agree: HiddenStates{.student, .teacher, .weight, .number}"},
    {"Distill.teachers", "a list of Teacher. None: the batches have their outputs (CachedTeacher)"},
    {"Distill.temperature", "softens the logits of student and teacher: Temperature<4>, Temperature<2.5>"},
    {"DryRun.batches", "batches to run forward and backward"},
    {"DryRun.out", "output; null writes nothing"},
    {"EarlyStop.grace_epochs", "ignores the validations of the first N epochs (a warning, if the run has no more), like Keras's start_from_epoch; Curriculum needs it"},
    {"EarlyStop.min_delta", "a change must be larger than this to count as an improvement"},
    {"EarlyStop.patience", "consecutive validations without improvement"},
    {"EarlyStop.restore_best", "true: restores the best weights when the run ends"},
    {"Focal.alpha", "one logit per label: the weight of label 1; label 0 has 1 - alpha. Negative: both have 1"},
    {"Focal.class_weights", "several classes: multiplies a label's loss. The mean divides by the number of labels"},
    {"Focal.counts_on_device", "as above"},
    {"Focal.gamma", "the exponent of 1 - p, where p is the probability of the label; 0 is cross entropy"},
    {"HtmlReport.path", "the page; it replaces an older one at once"},
    {"Huber.delta", "errors above it count linearly"},
    {"Log.every", "when a step writes a line; Every<1, Epoch> writes no step lines"},
    {"Log.path", "the file, appended to except after a resume"},
    {"Lora.alpha", "the product is scaled by alpha / rank"},
    {"Lora.dropout", "dropout of the adapter's input, in training"},
    {"Lora.rank", "columns of the first matrix"},
    {"LotteryTicket.fraction", "share of the remaining weights that each round prunes, over all layers together"},
    {"LotteryTicket.rewind", "the step to whose bits each round goes back"},
    {"LotteryTicket.rounds", "how often the trained weights are pruned"},
    {"Mlflow.at_end", "for what still waits when the fit ends"},
    {"Mlflow.every", "when a step's values are sent; validations and epochs always are"},
    {"Mlflow.experiment", "the experiment; made if the server has none of that name"},
    {"Mlflow.login", "token, or user and password"},
    {"Mlflow.most_waiting", "values that may wait for the server; later ones are dropped and counted"},
    {"Mlflow.run_name", "the run's name at the server"},
    {"Mlflow.tags", "names and texts"},
    {"Mlflow.timeout", "for one request"},
    {"Mlflow.uri", "the server's address, http:// or https://"},
    {"MlperfLog.every", "when a step writes a tracked_stats line"},
    {"MlperfLog.metric", "the metric of a validation that is written as eval_accuracy"},
    {"MlperfLog.path", "the file"},
    {"MlperfLog.target", "run_stop has the status success if a validation reaches it; without one, if the run was not stopped"},
    {"MlperfLog.target_is_below", "a loss, which falls to the target"},
    {"MlperfLog.values", "keys and values of the beginning, such as submission_benchmark, global_batch_size, train_samples"},
    {"MultiStepDecay.gamma", "what a decay multiplies the learning rate by"},
    {"MultiStepDecay.milestones", "the optimizer steps of the decays"},
    {"MultiStepDecay.steps", "its length in optimizer steps; to_end (0): what the other curves leave"},
    {"NoticePolling.interval", "from the end of one poll to the next"},
    {"NoticePolling.longest_pause", "the pause doubles with each consecutive failure, up to this"},
    {"NoticePolling.rare_pause", "upper bound of the pause if the service has never answered"},
    {"NoticePolling.warn", "called once with that warning, in the side thread"},
    {"NoticePolling.warn_after", "consecutive failures before the one warning"},
    {"OnMetrics.call", "the function"},
    {"OnMetrics.every", "when a step is a record"},
    {"Optimize.amsgrad", "divide by the largest second moment so far"},
    {"Optimize.beta1", "decay of the two moments, in [0, 1)"},
    {"Optimize.beta2", "decay of the two moments, in [0, 1)"},
    {"Optimize.dampening", "share of the gradient that momentum leaves out"},
    {"Optimize.eps", "added to the root of the second moment"},
    {"Optimize.first", "the options of the first algorithm, its groups included"},
    {"Optimize.groups", "parameter groups with their own options"},
    {"Optimize.initial_accumulator", "initial value of the sum of squares"},
    {"Optimize.lr", "learning rate"},
    {"Optimize.lr_decay", "the rate is divided by 1 + (step - 1) * lr_decay"},
    {"Optimize.maximize", "ascend instead of descend"},
    {"Optimize.momentum", "share of the last update that is kept"},
    {"Optimize.nesterov", "Nesterov momentum; needs momentum and no dampening"},
    {"Optimize.rest", "the options of the second, for all other parameters"},
    {"Optimize.select", "patterns of the names of the parameters that first updates; * stands for any text, dots included"},
    {"Optimize.weight_decay", "AdamW: decoupled, the share subtracted from the weight per unit of learning rate; others: L2, this times the weight is added to the gradient"},
    {"Percentile.percent", "range: leaves out the rest, half at each end"},
    {"Pipeline.chunks", "stages of each process, with Interleaved"},
    {"Pipeline.copies", "with the option Exact: data of a Grid whose stages is with (copies)"},
    {"Pipeline.layers", "number of layers of each stage, in the order of the list: {.layers = {3, 4, 4, 2}}. Stage s is in process s mod p. Set it if layers of equal size take unequal time"},
    {"Pipeline.with", "the processes, as of Replicate"},
    {"Plateau.by_magnitude", "the threshold is a share of the best value's magnitude; see below"},
    {"Plateau.cooldown", "validations after a reduction before patience counts again"},
    {"Plateau.factor", "what a reduction multiplies the learning rate by"},
    {"Plateau.min_factor", "lower bound of Plateau's factor"},
    {"Plateau.patience", "validations without improvement before a reduction"},
    {"Plateau.relative", "the threshold is a share of the best value"},
    {"Plateau.smallest_change", "smaller reductions are skipped"},
    {"Plateau.threshold", "a change must be larger than this"},
    {"PolynomialDecay.power", "of the remaining share"},
    {"PolynomialDecay.steps", "its length in optimizer steps; to_end (0): what the other curves leave"},
    {"PowerSGDSettings.error_feedback", "what a step has not sent is added to the next one's gradients"},
    {"PowerSGDSettings.min_compression_rate", "a matrix is compressed if its factors are smaller by more than this factor"},
    {"PowerSGDSettings.orthogonalization_epsilon", "is added to the norms of columns (R of 1 and 2)"},
    {"PowerSGDSettings.rank", "columns of the factors; 0: R of PowerSGD<R>"},
    {"PowerSGDSettings.saved_errors", "what a checkpoint has of the errors: those of each process, or their mean"},
    {"PowerSGDSettings.seed", "of the first Q"},
    {"PowerSGDSettings.start_step", "steps before this one send gradients as they are"},
    {"PowerSGDSettings.warm_start", "a step begins with the factor Q of the last one, and not with a random one"},
    {"Precision.scales", "what shares a scale: a tensor, or Scales::per_row"},
    {"Precision.scaling.backoff", "applied after a step that overflowed"},
    {"Precision.scaling.growth", "applied after growth_interval good steps in a row"},
    {"Precision.scaling.growth_interval", "good steps before the scale grows"},
    {"Precision.scaling.initial", "initial scale of the loss"},
    {"Precision.scaling.most_skips", "overflows in a row after which the run fails"},
    {"Profile.every", "when a window is due"},
    {"Profile.least_busy", "if the device works less than this, there are no further windows in this process; 0: there are"},
    {"Profile.length", "length of a window"},
    {"Profile.memory", "record allocations"},
    {"Profile.steps", "a window ends after this many steps, even if its seconds are not over: its trace must remain small enough to open"},
    {"Profile.traces", "traces to write; later windows are only analysed"},
    {"Profile.warm_up", "steps between the moment when a window is due and its beginning; at least 2. The second half is timed, for overhead_seconds"},
    {"Progress.line_seconds", "time between plain lines"},
    {"Progress.out", "a std::FILE*; null writes nothing"},
    {"Progress.plain", "plain lines also on a terminal; without a terminal, without TERM, with TERM=dumb, in a CI job and in a notebook there are no others"},
    {"Prometheus.every", "when a step is written; validations, epochs and events always are"},
    {"Prometheus.file", "the file; node_exporter reads only *.prom"},
    {"Prometheus.labels", "labels of every series; run is the run directory unless you set it. Not job or instance: each scrape has these, and Prometheus renames yours to exported_job unless it has honor_labels: true"},
    {"Prometheus.outcome", "set by fit: records written and lost, and why the first was lost"},
    {"PrometheusEndpoint.address", "the address to listen at; 0.0.0.0 is every network of the machine"},
    {"PrometheusEndpoint.every", "when the values of a step are taken; validations, epochs and events always are"},
    {"PrometheusEndpoint.labels", "labels of every series; run is the run directory unless you set it; not job or instance"},
    {"PrometheusEndpoint.listening", "set by fit: records taken and lost; the port"},
    {"PrometheusEndpoint.outcome", "set by fit: records taken and lost; the port"},
    {"PrometheusEndpoint.port", "0 takes any free one"},
    {"Prune.every", "when Cubic raises the sparsity"},
    {"Prune.from", "begins after N optimizer steps; From<0> when the run begins"},
    {"Prune.sparsity", "the same at run time"},
    {"Prune.steps", "the sparsity grows over N steps: fast at first, slowly at the end"},
    {"Qat.averaging", "share of the newest batch in the ranges of Moving"},
    {"Qat.layers", "the same: a QuantizeOptions"},
    {"QuantizeOptions.except", "which layers, all of them without a pattern; * stands for any text"},
    {"QuantizeOptions.only", "which layers, all of them without a pattern; * stands for any text"},
    {"Ramp.from", "factors of the learning rate at its ends; LinearDecay begins at 1"},
    {"Ramp.steps", "its length in optimizer steps; to_end (0): what the other curves leave"},
    {"Ramp.to", "factors of the learning rate at its ends; LinearDecay begins at 1"},
    {"RankInputs.bf16", "Wire<BF16>, Shard<States>, Wire<PowerSGD<R>>"},
    {"RankInputs.bucket", "of Ring"},
    {"RankInputs.gradients", "as they are computed"},
    {"RankInputs.last_bucket", "of Ring"},
    {"RankInputs.link", "measure_link, or tcp_link(gigabits, seconds) from a data sheet"},
    {"RankInputs.local_steps", "H, with sum = local_steps"},
    {"RankInputs.low_rank", "of the gradients with Wire<PowerSGD<R>>; 0: that lever is not tried"},
    {"RankInputs.micro_batch", "forward and backward of one micro-batch"},
    {"RankInputs.micro_batches", "of a step in all processes together"},
    {"RankInputs.most", "of the last row"},
    {"RankInputs.power_sgd", "Wire<BF16>, Shard<States>, Wire<PowerSGD<R>>"},
    {"RankInputs.price", "of a process, or of a machine with so many; machines are billed whole"},
    {"RankInputs.runs", "to do on the same processes"},
    {"RankInputs.shards_states", "Wire<BF16>, Shard<States>, Wire<PowerSGD<R>>"},
    {"RankInputs.steps", "of the run"},
    {"RankInputs.sum", "exact, ring, ring_after_backward (overlaps = false) or local_steps"},
    {"RankInputs.update", "clipping and the optimizer, which every process repeats; with Shard a part of it"},
    {"Recompute.segments", "segments of each Sequential and list, of nearly equal length"},
    {"Replicate.outer.lr", "learning rate of the outer steps; no schedule changes it"},
    {"Replicate.outer.momentum", "of Outer<Nesterov>"},
    {"Replicate.steps", "optimizer steps of a round"},
    {"Replicate.with", "the processes, as for Replicate"},
    {"Rollback.at_most", "returns before the error ends the run"},
    {"Rollback.every", "how often to keep the good state"},
    {"Rollback.jump", "a loss this many times the running mean is a jump; 0: never"},
    {"Rollback.slow_down", "multiplies the learning rate at each return"},
    {"SaveRules.parts", "patterns of the tensors that are saved"},
    {"SaveRules.shard_bytes", "a file takes no more bytes of tensors, unless a single tensor has more"},
    {"SaveRules.type", "rounds floating-point tensors, as to at::kBFloat16; not the scales of quantized layers. A finite number beyond the type is a WeightRangeError"},
    {"Settings.device", "the device of the run: cpu, cuda, cuda:1"},
    {"Settings.epochs", "passes over the training data"},
    {"Settings.name", "name of the run in tables and messages"},
    {"Settings.run_dir", "run directory; policies that write files need it"},
    {"Settings.seed", "keys the order of the data, and seeds LibTorch's generators when fit begins"},
    {"Settings.steps", "optimizer steps after which the run ends, in whatever epoch"},
    {"SkipNonFinite.most_skips", "skips in a row after which the run fails"},
    {"Spot.grace", "from the notice to the end of the machine; only used for a warning"},
    {"Spot.notices", "settings of Notices"},
    {"Spot.notices.polling", "interval, and the reaction to failures"},
    {"Spot.notices.provider", "settings of the provider"},
    {"Spot.on_preemption", "once the run is saved: Return makes fit return, Exit ends the process"},
    {"StartOn.until", "Epochs<N> or Steps<N>: complete epochs or optimizer steps on the CPU"},
    {"StepDecay.every", "optimizer steps between two decays"},
    {"StepDecay.gamma", "what a decay multiplies the learning rate by"},
    {"StepDecay.steps", "its length in optimizer steps; to_end (0): what the other curves leave"},
    {"StopAfter.limit", "training time after which the run ends: .limit = std::chrono::minutes(90)"},
    {"Structured.keep", "the same at run time"},
    {"Structured.rank", "which stay: l1, l2 (of all weights that make or take the channel, and its BatchNorm), batch_norm_scale"},
    {"Structured.round_to", "widths are rounded up to a multiple of this; Auto is the machine's vector"},
    {"TeacherCacheSettings.batch", "how many the teacher is asked for at once"},
    {"TeacherCacheSettings.device", "where it is asked"},
    {"TeacherCacheSettings.folder", "all caches may share one folder, also with cached: each key gets its own subfolder"},
    {"TeacherCacheSettings.out", "stream for its line; null for silence"},
    {"TeacherCacheSettings.temperature", "of the top K; a Distill gives its own"},
    {"TeacherCacheSettings.top_k", "keeps the K largest of each position, and one outcome for all others; 0 keeps all"},
    {"TeacherCacheSettings.type", "type of what is kept: kHalf, kBFloat16, kFloat"},
    {"TeacherOptions.autocast", "at::kBFloat16: autocast for this teacher. None: it computes in the type of its weights, whatever the recipe's precision. Data of another floating type are converted"},
    {"TeacherOptions.weight", "its share among several teachers"},
    {"TensorBoard.every", "when a step writes its scalars"},
    {"TensorBoard.gradients_every", "histograms of all gradients, after clipping"},
    {"TensorBoard.path", "the folder"},
    {"TensorBoard.texts", "tags and Markdown, written when the run begins"},
    {"TensorBoard.weights_every", "histograms of all parameters, after the step"},
    {"TensorBoard.writer", "a copy adds scalar, histogram, text and image from any thread"},
    {"Throughput.every", "length of a measurement"},
    {"Throughput.peak_flops", "the device's peak; 0: looked up by name"},
    {"TorchscriptOptions.dynamic_batch", "the exported module must take batches of another size. false: it may be bound to the example's"},
    {"TrainMetrics.every", "when to report; Every<1, Epoch>: at the end of each epoch"},
    {"TrainMetrics.metrics", "metrics in addition to train_loss, which is always measured; the member has their numbers"},
    {"Triplet.eps", "added to each difference"},
    {"Triplet.margin", "by how much the negative has to be farther than the positive"},
    {"Triplet.p", "the norm of the distance"},
    {"Triplet.swap", "takes the negative's distance from the positive if it is smaller"},
    {"Validate.every", "when to measure"},
    {"Validate.metrics", "metrics in addition to \"loss\", which is always measured; the member has their numbers"},
    {"Validate.sanity_batches", "batches of each validation source that are tried before the first step; 0: none"},
    {"Warmup.steps", "its length in optimizer steps; 0: no warm-up"},
    {"WeightRules.allow_misshapen", "tensors that may have another shape or type; they keep their values"},
    {"WeightRules.allow_missing", "tensors of the module that the file may lack"},
    {"WeightRules.allow_unexpected", "tensors of the file that the module may lack, by the file's names"},
    {"WeightRules.parts", "the tensors of the module that are loaded; the others keep their values, whatever the file has"},
    {"WeightRules.prefix", "names in the file begin with it; those that do not are found as well"},
    {"WeightRules.rename", "pairs of patterns {from, to}: the first whose to fits a name of the module says what it is called in the file. The texts of the stars are those of from, in their order"},
    {"WeightRules.resize", "tensors that may have another number of rows: the known rows are copied, new ones are the mean of all rows of the file"},
    {"WeightRules.transpose", "matrices that the file has transposed. Squares do not show it, so they must be named"},
    {"WeightRules.which", "of a checkpoint with averages"},
    {"WeightRules.within", "of a torch.save file with more than a state dict: its key"},
};

}  // namespace frugal::detail
// clang-format on
