// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/distill/objective.hpp>

#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <limits>
#include <set>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE WatchedLayer watched_layer(torch::nn::Module const& module, std::string const& name,
                                         std::string const& whose) {
  using Operator = LayerCall::Operator;
  std::string known;
  WatchedLayer found{.name = name, .weight = {}};
  bool embeds = false;
  for (auto const& item : module.named_modules("", /*include_self=*/false)) {
    auto const own = item.value()->named_parameters(/*recurse=*/false);
    at::Tensor const* weight = own.find("weight");
    // A quantized layer's weight is no parameter, and its layer is still found by it.
    if (auto const* const linear = item.value()->as<torch::nn::LinearImpl>())
      weight = &linear->weight;
    if (auto const* const conv = item.value()->as<torch::nn::Conv2dImpl>()) weight = &conv->weight;
    if (weight == nullptr || !weight->defined() || weight->dim() == 0) continue;
    known += " " + item.key();
    if (item.key() != name) continue;
    found.weight = *weight;
    embeds = item.value()->as<torch::nn::EmbeddingImpl>() != nullptr;
  }
  if (!found.weight.defined()) {
    auto const parameters = module.named_parameters();
    if (at::Tensor const* const weight = parameters.find(name)) found.weight = *weight;
  }
  std::int64_t const dims = found.weight.defined() ? found.weight.dim() : 0;
  if (dims != 1 && dims != 2 && dims != 4) {
    throw SettingsError(
        {.what = "the " + whose + " has no layer \"" + name + "\" whose output can be seen",
         .where = "Distill",
         .why = "its layers with a weight are:" + (known.empty() ? " none" : known),
         .fix = "Name a linear layer, a conv2d, an embedding or a layer_norm, as named_modules() "
                "does."});
  }
  found.op = dims == 1   ? Operator::layer_norm
             : dims == 4 ? Operator::conv2d
             : embeds    ? Operator::embedding
                         : Operator::linear;
  found.width = found.weight.size(embeds ? 1 : 0);
  return found;
}

FRUGAL_INLINE LayerOutputs::LayerOutputs(std::vector<WatchedLayer> const& layers)
    : layers_(&layers) {
  hooks_.reserve(layers.size());
  for (WatchedLayer const& layer : layers) {
    hooks_.push_back(std::make_shared<Hook>(layer.op));
    intercept(layer.weight, hooks_.back());
  }
}

FRUGAL_INLINE at::Tensor const& LayerOutputs::of(std::size_t layer) const {
  Hook const& hook = *hooks_[layer];
  if (hook.calls == 1) return hook.output;
  throw ModuleError({.what = "the layer \"" + (*layers_)[layer].name + "\" was called " +
                             std::to_string(hook.calls) + " times in a forward pass",
                     .where = "Distill",
                     .why = hook.calls == 0
                                ? "what is called instead of the layer cannot be seen: a fused "
                                  "operator, or another weight"
                                : "its outputs cannot be distinguished",
                     .fix = "Name a layer that every forward pass calls once."});
}

FRUGAL_INLINE std::string DistillSettings::identity() const {
  std::string text;
  for (Teacher const& each : teachers) text += (text.empty() ? "" : "; ") + each.identity();
  return text;
}

FRUGAL_INLINE void require_temperature(double temperature, bool softens) {
  if (softens ? temperature > 0 && std::isfinite(temperature) : temperature == 0) return;
  throw SettingsError(
      {.what = "the temperature is " + std::to_string(temperature),
       .where = "Distill::temperature",
       .why = softens ? "logits are divided by it" : "SquaredError compares outputs as they are",
       .fix = softens ? "Give a number above 0, such as 4."
                      : "Leave it 0, or write Distill<Temperature<4>>."});
}

FRUGAL_INLINE Lesson LessonPlan::of(torch::nn::Module& student, DistillSettings settings,
                                    bool adapts) {
  LessonPlan plan(student, std::move(settings));
  plan.check();
  plan.find_layers();
  plan.project(adapts);
  return std::move(plan.lesson_);
}

FRUGAL_INLINE void LessonPlan::refuse(std::string what, std::string where, std::string why,
                                      std::string fix) {
  throw SettingsError({.what = std::move(what),
                       .where = std::move(where),
                       .why = std::move(why),
                       .fix = std::move(fix)});
}

FRUGAL_INLINE void LessonPlan::check() const {
  DistillSettings const& all = lesson_.settings;
  if (!(all.alpha >= 0 && all.alpha <= 1)) {
    refuse("alpha is " + std::to_string(all.alpha), "Distill::alpha",
           "it is the share of the teacher in the loss", "Give a number from 0 to 1.");
  }
  auto const check_pair = [&](double weight, std::size_t number) {
    if (!(weight >= 0) || !std::isfinite(weight)) {
      refuse("a pair of layers has the weight " + std::to_string(weight), "Distill",
             "a term of the loss is multiplied by it", "Give a number from 0 on.");
    }
    if (number < all.teachers.size()) return;
    refuse("a pair of layers is of teacher " + std::to_string(number), "Distill",
           "there are " + std::to_string(all.teachers.size()) +
               " teachers, counted from 0, and cached outputs have no layers",
           "Name a teacher of Distill::teachers.");
  };
  for (HiddenStates const& each : all.hidden) check_pair(each.weight, each.number);
  for (AttentionMaps const& each : all.attention) {
    check_pair(each.weight, each.number);
    if (each.heads >= 1 && each.student.key.empty() == each.teacher.key.empty()) continue;
    refuse("a pair of attention maps is incomplete", "Distill, " + each.student.query,
           "it is of two convolutions, or of queries and keys on both sides, with one head or "
           "more",
           "Name query and key of student and teacher, or two convolutions.");
  }
  std::set<c10::TensorImpl const*> own;
  for (at::Tensor const& each : student_.parameters()) own.insert(each.unsafeGetTensorImpl());
  for (Teacher const& teacher : all.teachers) {
    for (at::Tensor const& each : teacher.module().parameters()) {
      if (!own.contains(each.unsafeGetTensorImpl())) continue;
      refuse("the teacher has parameters of the student", "Distill::teachers",
             "they are trained, and a teacher is not", "Give the teacher a copy of them.");
    }
  }
}

FRUGAL_INLINE std::size_t LessonPlan::watch(torch::nn::Module const& module,
                                            std::string const& name, std::string const& whose) {
  WatchedLayer layer = watched_layer(module, name, whose);
  auto& all = lesson_.layers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].weight.is_same(layer.weight) && all[i].op == layer.op) return i;
  }
  all.push_back(std::move(layer));
  return all.size() - 1;
}

FRUGAL_INLINE void LessonPlan::find_layers() {
  DistillSettings const& all = lesson_.settings;
  auto const teacher_of = [&](auto const& each) -> torch::nn::Module const& {
    return all.teachers[each.number].module();
  };
  for (HiddenStates const& each : all.hidden) {
    std::size_t const student = watch(student_, each.student, "student");
    lesson_.hidden.push_back({student, watch(teacher_of(each), each.teacher, "teacher")});
  }
  for (AttentionMaps const& each : all.attention) {
    auto const both = [&](torch::nn::Module const& module, AttentionMaps::Layers const& layers,
                          char const* whose) {
      std::size_t const query = watch(module, layers.query, whose);
      std::size_t const key = layers.key.empty() ? query : watch(module, layers.key, whose);
      for (std::size_t const i : {query, key}) {
        std::int64_t const width = lesson_.layers[i].width;
        if (width == lesson_.layers[query].width && width % each.heads == 0) continue;
        refuse("queries or keys cannot be split into " + std::to_string(each.heads) + " heads",
               "Distill, " + lesson_.layers[i].name, "its width is " + std::to_string(width),
               "Give queries and keys of one width, which the heads divide.");
      }
      return std::pair(query, key);
    };
    auto const [query, key] = both(student_, each.student, "student");
    auto const [teacher_query, teacher_key] = both(teacher_of(each), each.teacher, "teacher");
    lesson_.attention.push_back({query, key, teacher_query, teacher_key});
  }
}

FRUGAL_INLINE void LessonPlan::project(bool adapts) {
  auto const children = student_.named_children();
  auto const* const found = children.find(projection_name);
  std::shared_ptr<torch::nn::Module> child = found != nullptr ? *found : nullptr;
  std::size_t wanted = 0;
  std::vector<std::pair<std::string, at::Tensor>> made;
  for (std::size_t i = 0; i < lesson_.hidden.size(); ++i) {
    Lesson::Pair& pair = lesson_.hidden[i];
    WatchedLayer const& from = lesson_.layers[pair.student];
    WatchedLayer const& to = lesson_.layers[pair.teacher];
    if (from.width == to.width) continue;
    ++wanted;
    std::string const name = std::to_string(i);
    if (child) {
      auto const parameters = child->named_parameters();
      at::Tensor const* const old = parameters.find(name);
      if (old == nullptr || old->size(0) != to.width || old->size(1) != from.width) {
        refuse_projection("it is one of other layers");
      }
      pair.projection = *old;
      continue;
    }
    if (!adapts) refuse_projection("it has none");
    auto const type = from.weight.is_floating_point() ? from.weight.scalar_type() : at::kFloat;
    pair.projection = at::empty({to.width, from.width}, from.weight.options().dtype(type));
    torch::nn::init::kaiming_uniform_(pair.projection, std::sqrt(5.0));  // as torch::nn::Linear
    made.emplace_back(name, pair.projection);
  }
  if (child && child->parameters().size() != wanted) {
    refuse_projection("it is one of other layers");
  }
  if (made.empty()) return;
  child = std::make_shared<torch::nn::Module>(projection_name);
  for (auto const& [name, tensor] : made) child->register_parameter(name, tensor);
  for (auto const& [name, tensor] : made)
    pair_of(name).projection = child->named_parameters()[name];
  student_.register_module(projection_name, child);
}

FRUGAL_INLINE void LessonPlan::refuse_projection(std::string why) {
  throw StateError({.what = "the student's projection is not that of this Distill",
                    .where = projection_name,
                    .why = std::move(why),
                    .fix = "Call adapt(module, distill) before the module is trained or loaded, "
                           "and remove_projection(module) before another Distill."});
}

FRUGAL_INLINE std::shared_ptr<Lesson const> Lessons::begin(torch::nn::Module& student,
                                                           DistillSettings settings, bool adapts) {
  auto lesson = std::make_shared<Lesson>(LessonPlan::of(student, std::move(settings), adapts));
  lesson->identity = lesson->settings.identity();
  std::scoped_lock const lock(mutex_);
  lessons_[&student] = lesson;
  return lesson;
}

FRUGAL_INLINE void Lessons::end(torch::nn::Module const& student, Lesson const* lesson) {
  std::scoped_lock const lock(mutex_);
  auto const found = lessons_.find(&student);
  if (found != lessons_.end() && found->second.get() == lesson) lessons_.erase(found);
}

FRUGAL_INLINE std::shared_ptr<Lesson const> Lessons::of(torch::nn::Module const& student) const {
  std::scoped_lock const lock(mutex_);
  auto const found = lessons_.find(&student);
  return found == lessons_.end() ? nullptr : found->second;
}

FRUGAL_INLINE at::Tensor mean_where(at::Tensor const& values, at::Tensor const& mask) {
  if (!mask.defined()) return values.mean();
  at::Tensor whole = mask;
  while (whole.dim() < values.dim()) whole = whole.unsqueeze(-1);
  at::Tensor const count = mask.sum().clamp_min(1);
  std::int64_t each = 1;
  for (std::int64_t d = mask.dim(); d < values.dim(); ++d) each *= values.size(d);
  return at::where(whole, values, at::Scalar(0)).sum() / (count * each);
}

FRUGAL_INLINE void require_logits(at::Tensor const& student, at::Tensor const& teacher) {
  bool const classes = student.dim() >= 2 && student.size(1) >= 2;
  if (classes && student.sizes() == teacher.sizes()) return;
  throw ShapeError(
      {.what = classes ? "the student's logits do not fit the teacher's" : "there are no classes",
       .where = "Distill",
       .why = "student " + shape_text(student) + ", teacher " + shape_text(teacher) +
              "; classes are dimension 1, and there are two or more",
       .fix = classes ? "Give both the same classes."
                      : "Use Distill<SquaredError> for outputs that are no logits of classes."});
}

FRUGAL_INLINE at::Tensor divergence(at::Tensor const& log_student, at::Tensor const& teacher,
                                    double temperature) {
  at::Tensor const target = at::softmax(at_least_float(teacher) / temperature, 1);
  return at::kl_div(log_student, target, at::Reduction::None).sum(1);
}

FRUGAL_INLINE at::Tensor divergence_of_top(at::Tensor const& log_student, at::Tensor const& kept,
                                           at::Tensor const& classes) {
  at::Tensor const index = classes.to(at::kLong);
  at::Tensor const others = log_student.scatter(1, index, -std::numeric_limits<double>::infinity())
                                .logsumexp({1}, /*keepdim=*/true);
  at::Tensor const outcomes = at::cat({log_student.gather(1, index), others}, 1);
  // Sixteen bits have rounded them: the sum is 1 again.
  at::Tensor const target = at::softmax(at_least_float(kept), 1);
  return at::kl_div(outcomes, target, at::Reduction::None).sum(1);
}

FRUGAL_INLINE at::Tensor squared_error(at::Tensor const& student, at::Tensor const& teacher) {
  require_one_shape(student, teacher, "Distill");
  return at::mse_loss(at_least_float(student), at_least_float(teacher), at::Reduction::None);
}

FRUGAL_INLINE void refuse_states(char const* what, at::Tensor const& student,
                                 at::Tensor const& teacher, std::string const& pair) {
  throw ShapeError({.what = std::string("the ") + what + " of student and teacher do not fit",
                    .where = "Distill, " + pair,
                    .why = "student " + shape_text(student) + ", teacher " + shape_text(teacher),
                    .fix = "Name two layers whose outputs differ in their width alone."});
}

FRUGAL_INLINE at::Tensor hidden_term(at::Tensor student, at::Tensor teacher,
                                     at::Tensor const& projection, bool channels,
                                     at::Tensor const& mask_BT, std::string const& pair) {
  if (channels) {
    student = student.movedim(1, -1);
    teacher = teacher.movedim(1, -1);
  }
  if (projection.defined()) student = at::linear(student.to(projection.scalar_type()), projection);
  if (student.sizes() != teacher.sizes()) refuse_states("hidden states", student, teacher, pair);
  bool const positions = mask_BT.defined() && !channels && student.dim() >= 3 &&
                         student.size(0) == mask_BT.size(0) && student.size(1) == mask_BT.size(1);
  at::Tensor const errors =
      at::mse_loss(at_least_float(student), at_least_float(teacher), at::Reduction::None);
  return mean_where(errors, positions ? mask_BT : at::Tensor());
}

FRUGAL_INLINE at::Tensor spatial_attention_term(at::Tensor const& student,
                                                at::Tensor const& teacher,
                                                std::string const& pair) {
  if (student.dim() != 4 || teacher.dim() != 4 ||
      student.sizes().slice(2) != teacher.sizes().slice(2)) {
    refuse_states("attention maps", student, teacher, pair);
  }
  auto const map = [](at::Tensor const& output) {
    at::Tensor const flat = at_least_float(output).pow(2).mean(1).flatten(1);
    return flat / flat.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-12);
  };
  return (map(student) - map(teacher)).pow(2).mean();
}

FRUGAL_INLINE at::Tensor attention_map(at::Tensor const& query, at::Tensor const& key,
                                       std::int64_t heads, bool causal, at::Tensor const& mask_BT) {
  auto const split = [&](at::Tensor const& rows) {
    return at_least_float(rows)
        .reshape({rows.size(0), rows.size(1), heads, rows.size(2) / heads})
        .transpose(1, 2);
  };
  double const scale = std::sqrt(static_cast<double>(query.size(2) / heads));
  at::Tensor scores = split(query).matmul(split(key).transpose(2, 3)) / scale;
  // Not -infinity: a row without any key would be NaN, and so its gradient.
  constexpr double none = -1e30;
  if (mask_BT.defined()) {
    scores = scores.masked_fill(mask_BT.logical_not().unsqueeze(1).unsqueeze(1), none);
  }
  if (causal) {
    at::Tensor const later =
        at::ones({query.size(1), key.size(1)}, scores.options().dtype(at::kBool)).triu(1);
    scores = scores.masked_fill(later, none);
  }
  return at::log_softmax(scores, -1);
}

FRUGAL_INLINE at::Tensor self_attention_term(at::Tensor const& student_BATT,
                                             at::Tensor const& teacher_BATT,
                                             at::Tensor const& mask_BT) {
  at::Tensor const each_BAT =
      at::kl_div(student_BATT, teacher_BATT, at::Reduction::None, /*log_target=*/true).sum(-1);
  return mean_where(each_BAT.transpose(1, 2), mask_BT);
}

FRUGAL_INLINE void require_taught_by(TeacherOutputs const& cached, Lesson const& lesson,
                                     double temperature) {
  auto const refuse = [](std::string what, std::string why, std::string fix) {
    throw SettingsError({.what = std::move(what),
                         .where = "a batch with cached outputs",
                         .why = std::move(why),
                         .fix = std::move(fix)});
  };
  if (!lesson.layers.empty()) {
    refuse("Distill compares layers, and a cache has none", "it has the teacher's logits alone",
           "Remove Distill::hidden and Distill::attention, or train without the cache.");
  }
  if (!lesson.settings.teachers.empty() && lesson.identity != cached.identity) {
    refuse("the cache is not of Distill's teachers",
           "it is of " + cached.identity + ", and Distill has " + lesson.identity,
           "Make the cache of these teachers.");
  }
  if (cached.top_k == 0) return;
  if (temperature == 0) {
    refuse("Distill<SquaredError> needs all outputs",
           "the cache has the largest " + std::to_string(cached.top_k),
           "Set TeacherCacheSettings::top_k to 0.");
  }
  if (temperature != cached.temperature) {
    refuse("the cache is of another temperature",
           "it is " + std::to_string(cached.temperature) + " there, and Distill's is " +
               std::to_string(temperature),
           "Make the cache for this Distill: what all other classes have together depends on it.");
  }
}

FRUGAL_INLINE void refuse_no_output() {
  throw ModuleError({.what = "the objective does not say what the student predicted",
                     .where = "Distill",
                     .why = "its Loss::output is undefined",
                     .fix = "Return Loss{.value = loss, .output = logits}."});
}

FRUGAL_INLINE void refuse_no_teacher() {
  throw SettingsError({.what = "Distill has no teacher",
                       .where = "Distill::teachers",
                       .why = "the batch has no teacher's outputs, either",
                       .fix = "Give Distill a Teacher, or train on a CachedTeacher's source."});
}

}  // namespace frugal::detail
