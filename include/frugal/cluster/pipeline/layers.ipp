// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/pipeline/layers.hpp>

#include <frugal/inline.hpp>

#include <ATen/core/grad_mode.h>

#include <limits>
#include <unordered_map>
#include <unordered_set>

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::size_t> balanced_cuts(std::vector<std::int64_t> const& elements,
                                                     std::size_t stages) {
  std::size_t const layers = elements.size();
  std::vector<std::int64_t> before(layers + 1);
  std::partial_sum(elements.begin(), elements.end(), before.begin() + 1);
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  // least[s][n]: the largest of s stages over the first n layers; cut[s][n]: where the last one begins.
  std::vector<std::vector<std::int64_t>> least(stages + 1,
                                               std::vector<std::int64_t>(layers + 1, never));
  std::vector<std::vector<std::size_t>> cut(stages + 1, std::vector<std::size_t>(layers + 1));
  least[0][0] = 0;
  for (std::size_t s = 1; s <= stages; ++s) {
    for (std::size_t n = 1; n <= layers; ++n) {
      for (std::size_t begin = s - 1; begin < n; ++begin) {
        std::int64_t const last = before[n] - before[begin];
        if (last == 0 || least[s - 1][begin] == never) continue;
        std::int64_t const most = std::max(last, least[s - 1][begin]);
        // Of equal ones the later cut: layers without parameters follow the layer before them.
        if (most <= least[s][n]) {
          least[s][n] = most;
          cut[s][n] = begin;
        }
      }
    }
  }
  if (least[stages][layers] == never) {
    auto const trained =
        std::ranges::count_if(elements, [](std::int64_t each) { return each != 0; });
    throw ModuleError({.what = std::to_string(stages) + " stages, and " + std::to_string(trained) +
                               " layers with parameters that are trained",
                       .where = "Pipeline",
                       .why = "each stage trains at least one layer",
                       .fix = "Start fewer processes, or cut the module into more layers."});
  }
  std::vector<std::size_t> begins(stages + 1, layers);
  for (std::size_t s = stages; s > 0; --s) begins[s - 1] = cut[s][begins[s]];
  return begins;
}

FRUGAL_INLINE std::vector<std::size_t> given_cuts(std::vector<std::int64_t> const& elements,
                                                  std::vector<int> const& layers,
                                                  std::size_t stages) {
  std::vector<std::size_t> begins{0};
  bool fits = layers.size() == stages;
  for (int const count : layers) {
    std::size_t const begin = begins.back();
    std::size_t const end = begin + static_cast<std::size_t>(std::max(count, 0));
    begins.push_back(end);
    fits = fits && count > 0 && end <= elements.size() &&
           std::any_of(elements.begin() + static_cast<std::ptrdiff_t>(begin),
                       elements.begin() + static_cast<std::ptrdiff_t>(end),
                       [](std::int64_t each) { return each != 0; });
  }
  if (fits && begins.back() == elements.size()) return begins;
  std::string text;
  for (int const count : layers) text += (text.empty() ? "" : ", ") + std::to_string(count);
  throw SettingsError({.what = "Pipeline::layers is {" + text + "}",
                       .where = "Pipeline",
                       .why = "there are " + std::to_string(stages) + " stages and " +
                              std::to_string(elements.size()) +
                              " layers, and each stage trains at least one of them",
                       .fix = "Give each stage its number of layers, in the order of the list, or "
                              "leave it out: stages then have about as many parameters each."});
}

FRUGAL_INLINE TensorPlaces DividedLayers::places() const {
  using Place = PlacedTensor::Place;
  TensorPlaces all;
  for (Part const& each : parts_) {
    Place const place = each.stage == every_process ? Place::everywhere
                        : is_own(each.stage)        ? Place::here
                                                    : Place::elsewhere;
    if (each.is_parameter && each.is_first_name) all.order.push_back(each.name);
    all.tensors.emplace(each.name, PlacedTensor{.place = place,
                                                .sizes = each.sizes,
                                                .trained = each.trained,
                                                .type = static_cast<int>(each.type)});
  }
  return all;
}

FRUGAL_INLINE at::Tensor DividedLayers::run(at::Tensor input, Call const& call) {
  if (stage_pass != nullptr) return train(*stage_pass, std::move(input), call);
  if (at::GradMode::is_enabled()) {
    if (all_->size() == 1) return through(0, std::move(input), call, nullptr);
    refuse_gradients();
  }
  return infer(std::move(input), call);
}

FRUGAL_INLINE at::Tensor DividedLayers::train(StagePass& pass, at::Tensor input, Call const& call) {
  if (std::exchange(pass.ran, true)) refuse_second_call();
  if (pass.stage == 0) pass.input = std::move(input);
  at::Tensor output = through(pass.stage, pass.input, call, &pass.key);
  if (pass.stage != stages() - 1) {
    pass.output = std::move(output);
    throw StageEnd{};
  }
  seed(pass.key, layers());
  return output;
}

FRUGAL_INLINE at::Tensor DividedLayers::through(int stage, at::Tensor x, Call const& call,
                                                std::uint64_t const* key) const {
  auto const which = static_cast<std::size_t>(stage);
  for (std::size_t layer = begins_[which]; layer < begins_[which + 1]; ++layer) {
    if (key != nullptr) seed(*key, layer);
    x = call(layer, std::move(x));
    if (!x.defined()) refuse_undefined(layer);
  }
  return x;
}

FRUGAL_INLINE at::Tensor DividedLayers::infer(at::Tensor x, Call const& call) {
  // Layers may draw random numbers here as well: all processes go on with the same ones.
  auto const key = static_cast<std::uint64_t>(
      at::randint(std::numeric_limits<std::int64_t>::max(), {}, at::kLong).item<std::int64_t>());
  x = all_->size() == 1 ? through(0, std::move(x), call, &key) : infer(std::move(x), call, key);
  seed(key, layers());
  return x;
}

FRUGAL_INLINE at::Tensor DividedLayers::infer(at::Tensor x, Call const& call, std::uint64_t key) {
  StageLinks links(*all_, x.device(), stages());
  for (int stage = 0; stage < stages(); ++stage) {
    if (!is_own(stage)) continue;
    if (stage != 0) x = links.take_any(rank_of(stage - 1), stage);
    x = through(stage, std::move(x), call, &key);
    if (stage + 1 != stages()) links.send_any(x, rank_of(stage + 1), stage + 1);
  }
  // All processes measure the whole module's output.
  int const last = rank_of(stages() - 1);
  if (all_->rank() != last) {
    x = links.take_any(last, 0);
    links.settle();
    return x;
  }
  for (int rank = 0; rank < all_->size(); ++rank) {
    if (rank != last) links.send_any(x, rank, 0);
  }
  links.settle();
  return x;
}

FRUGAL_INLINE void DividedLayers::refuse_second_call() {
  throw ModuleError({.what = "the objective calls the divided layers twice for one micro-batch",
                     .where = "Pipeline",
                     .why = "a stage gets one input from the stage before it",
                     .fix = "Call the module once, with both inputs in one batch."});
}

FRUGAL_INLINE void DividedLayers::refuse_gradients() {
  throw ModuleError(
      {.what = "divided layers are called with gradients outside of a step of Pipeline",
       .where = "Pipeline",
       .why = "the other processes have the other layers, and take no part in this call",
       .fix = "Train with Trainer::fit. Without gradients (torch::NoGradGuard) all processes may "
              "call the module together."});
}

FRUGAL_INLINE void DividedLayers::refuse_undefined(std::size_t layer) {
  throw ModuleError({.what = "layer " + std::to_string(layer) + " returns no tensor",
                     .where = "Pipeline",
                     .why = "one tensor travels from a stage to the next one",
                     .fix = "Return one tensor from each layer."});
}

/// Likewise of a ModuleList.
struct StageListMember final : DividedMember {
  at::Tensor call_all(at::Tensor input, Call const& call) override {
    return divided->run(std::move(input), [&](std::size_t layer, at::Tensor x) {
      return call(layers[layer], std::move(x));
    });
  }
  std::shared_ptr<DividedLayers> divided;
  std::vector<std::shared_ptr<torch::nn::Module>> layers{};
};

FRUGAL_INLINE std::shared_ptr<DividedLayers> LayerList::divided() const {
  if (sequential != nullptr) {
    for (AnyModule& first : *sequential) {
      if (first.type_info() != typeid(StageMember)) return nullptr;
      return first.get<StageMember>().divided;
    }
  } else if (list->begin() != list->end()) {
    auto* const member = dynamic_cast<StageListMember*>(list->begin()->get());
    return member == nullptr ? nullptr : member->divided;
  }
  return nullptr;
}

FRUGAL_INLINE LayerList LayerList::of(torch::nn::Module& root) {
  std::vector<LayerList> found;
  visit(root, "", found);
  if (found.size() == 1) return found.front();
  std::string names;
  for (LayerList const& each : found) names += (names.empty() ? "" : ", ") + each.name;
  throw ModuleError(
      {.what = found.empty() ? "the module has no Sequential and no ModuleList"
                             : "the module has several lists of layers: " + names,
       .where = "Pipeline",
       .why = "stages are consecutive layers of one list",
       .fix = "Put the layers into one torch::nn::Sequential, or into one ModuleList over which "
              "forward iterates with frugal::each(list, x, call)."});
}

FRUGAL_INLINE void LayerList::divide(torch::nn::Module& root,
                                     std::shared_ptr<DividedLayers> const& divided) {
  auto const children = container().named_children();
  std::vector<int> stages;
  for (std::size_t i = 0; i < children.size(); ++i) stages.push_back(divided->stage_of(i));
  divided->parts() = parts_of(root, children, stages, divided->processes().size() > 1);
  stand_in(divided, stages);
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (divided->is_own(stages[i])) continue;
    release(*children[i].value());
    container().unregister_module(children[i].key());
  }
  if (divided->processes().size() == 1) return;
  for (at::Tensor const& each : root.parameters()) note_divided(each);
}

FRUGAL_INLINE void LayerList::visit(torch::nn::Module& module, std::string const& name,
                                    std::vector<LayerList>& found) {
  LayerList here{.name = name,
                 .sequential = dynamic_cast<torch::nn::SequentialImpl*>(&module),
                 .list = dynamic_cast<torch::nn::ModuleListImpl*>(&module)};
  if ((here.sequential != nullptr && !here.sequential->is_empty()) ||
      (here.list != nullptr && !here.list->is_empty())) {
    found.push_back(here);
    return;
  }
  for (auto const& child : module.named_children()) {
    visit(*child.value(), name.empty() ? child.key() : name + "." + child.key(), found);
  }
}

FRUGAL_INLINE std::vector<DividedLayers::Part> LayerList::parts_of(torch::nn::Module& root,
                                                                   Children const& children,
                                                                   std::vector<int> const& stages,
                                                                   bool several) const {
  std::unordered_map<c10::TensorImpl const*, int> stage_of;
  auto const note = [&](at::Tensor const& tensor, int stage) {
    if (!tensor.defined()) return;
    auto const [place, is_new] = stage_of.emplace(tensor.unsafeGetTensorImpl(), stage);
    if (!is_new && place->second != stage) refuse_shared();
  };
  for (std::size_t i = 0; i < children.size(); ++i) {
    for (at::Tensor const& each : children[i].value()->parameters()) note(each, stages[i]);
    for (at::Tensor const& each : children[i].value()->buffers()) note(each, stages[i]);
  }
  std::vector<DividedLayers::Part> parts;
  std::unordered_set<c10::TensorImpl const*> seen;
  auto const add = [&](auto const& item, bool is_parameter) {
    if (!item.value().defined()) return;
    bool const is_new = seen.insert(item.value().unsafeGetTensorImpl()).second;
    auto const place = stage_of.find(item.value().unsafeGetTensorImpl());
    bool const outside = !name.empty() && !item.key().starts_with(name + ".");
    if (several && outside && place != stage_of.end()) refuse_shared();
    parts.push_back(
        {.name = item.key(),
         .sizes = item.value().sizes().vec(),
         .type = item.value().scalar_type(),
         .trained = item.value().requires_grad(),
         .stage = place == stage_of.end() ? DividedLayers::every_process : place->second,
         .is_parameter = is_parameter,
         .is_first_name = is_new});
  };
  for (auto const& item : root.named_parameters()) add(item, true);
  for (auto const& item : root.named_buffers()) add(item, false);
  return parts;
}

FRUGAL_INLINE void LayerList::stand_in(std::shared_ptr<DividedLayers> const& divided,
                                       std::vector<int> const& stages) {
  std::size_t index = 0;
  if (sequential != nullptr) {
    std::vector<AnyModule> layers(stages.size());
    for (AnyModule& member : *sequential) {
      if (divided->is_own(stages[index])) layers[index] = member;
      auto stand_in = std::make_shared<StageMember>();
      stand_in->divided = divided;
      member = AnyModule(std::move(stand_in));
      ++index;
    }
    sequential->begin()->get<StageMember>().layers = std::move(layers);
    return;
  }
  auto first = std::make_shared<StageListMember>();
  first->divided = divided;
  first->layers.resize(stages.size());
  for (std::shared_ptr<torch::nn::Module>& member : *list) {
    if (divided->is_own(stages[index])) first->layers[index] = member;
    member = first;
    ++index;
  }
}

FRUGAL_INLINE void LayerList::release(torch::nn::Module& layer) {
  at::NoGradGuard const no_gradients;
  auto const empty = [](at::Tensor& tensor) {
    if (!tensor.defined()) return;
    tensor.mutable_grad().reset();
    tensor.set_data(at::empty({0}, tensor.options().requires_grad(false)));
  };
  for (at::Tensor& each : layer.parameters()) empty(each);
  for (at::Tensor& each : layer.buffers()) empty(each);
}

FRUGAL_INLINE void LayerList::refuse_shared() {
  throw ModuleError({.what = "two stages share a parameter or buffer, or a stage and a layer "
                             "outside of the list",
                     .where = "Pipeline",
                     .why = "each process would update its own copy",
                     .fix = "Put the layers that share it into one stage with Pipeline::layers, "
                            "or register it outside of the list: all processes have that, and "
                            "add up its gradients."});
}

}  // namespace frugal::detail
