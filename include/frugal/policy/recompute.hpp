// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/libtorch/recompute/frame.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/recompute/segments.hpp>

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// A Sequential whose members record chains for the duration of a forward pass.
///
/// Members do not require a call through Sequential::forward: a member whose input is what the
/// previous member of its segment has just returned continues that chain, any other begins a new
/// one. A forward that calls the members by hand is therefore correct, and saves memory if it is a
/// plain chain.
class SegmentedSequential {
 public:
  inline SegmentedSequential(torch::nn::SequentialImpl& sequential, Plan const& plan);
  SegmentedSequential(SegmentedSequential const&) = delete;
  SegmentedSequential& operator=(SegmentedSequential const&) = delete;

  /// Swaps the stand-ins in, or the members back.
  void swap();

  AnyValue call(std::size_t index, Arguments arguments);

 private:
  /// The chain that the next member may continue, identified by the tensor that would be its input.
  struct Open {
    std::size_t next = 0;
    std::shared_ptr<ChainFrame> frame;  ///< null if the segment is kept
    at::Tensor last;
    std::int64_t version = 0;
  };

  bool continues(std::size_t index, Arguments& arguments) const;

  void leave_open(std::size_t index, std::shared_ptr<ChainFrame> frame, AnyValue& result);

  torch::nn::SequentialImpl* sequential_;
  Members members_;
  SegmentNumbers segments_;
  std::vector<AnyModule> others_;  ///< the stand-ins; the members, while swapped
  Open open_;
};

/// The stand-in for a member of a segmented Sequential. Names come from the registered children,
/// which are unchanged.
struct SegmentMember : torch::nn::Module {
  // AnyModule requires it; the holder below is what gets called.
  at::Tensor forward(at::Tensor x) { return x; }

  SegmentedSequential* owner = nullptr;
  std::size_t index = 0;
  std::shared_ptr<torch::nn::Module> original;
};

}  // namespace frugal::detail

/// AnyModule's holder for SegmentMember: accepts any arguments, and exposes the original module.
template <class... Inputs>
struct torch::nn::AnyModuleHolder<frugal::detail::SegmentMember, Inputs...>
    : torch::nn::AnyModulePlaceholder {
  using Member = frugal::detail::SegmentMember;

  explicit AnyModuleHolder(std::shared_ptr<Member>&& member)
      : AnyModulePlaceholder(typeid(Member)), module(std::move(member)) {}

  torch::nn::AnyValue forward(frugal::detail::Arguments&& arguments) override {
    return module->owner->call(module->index, std::move(arguments));
  }
  std::shared_ptr<torch::nn::Module> ptr() override { return module->original; }
  std::unique_ptr<torch::nn::AnyModulePlaceholder> copy() const override {
    return std::make_unique<AnyModuleHolder>(*this);
  }
  std::unique_ptr<torch::nn::AnyModulePlaceholder> clone_module(
      std::optional<c10::Device>) const override {
    TORCH_CHECK(false,
                "frugal: a Sequential cannot be cloned while Recompute has split it into segments");
  }

  std::shared_ptr<Member> module;
};

namespace frugal::detail {

/// The Sequentials of a module for which a plan has segments; of nested ones the outermost, unless
/// their members were named one by one.
class SegmentedModule {
 public:
  SegmentedModule(torch::nn::Module& root, Plan const& plan, bool outermost) {
    visit(root, plan, outermost);
  }

  /// For the duration of a forward pass, also one that throws.
  class [[nodiscard]] SwappedIn {
   public:
    explicit SwappedIn(SegmentedModule& module) : module_(module) {
      for (auto& each : module_.sequentials_) each->swap();
    }
    SwappedIn(SwappedIn const&) = delete;
    SwappedIn& operator=(SwappedIn const&) = delete;
    ~SwappedIn() {
      for (auto& each : module_.sequentials_) each->swap();
    }

   private:
    SegmentedModule& module_;
  };

 private:
  void visit(torch::nn::Module& module, Plan const& plan, bool outermost);

  std::vector<std::unique_ptr<SegmentedSequential>> sequentials_;
};

}  // namespace frugal::detail

namespace frugal {

namespace detail {

template <class How>
inline constexpr bool is_how = false;
template <auto N>
inline constexpr bool is_how<Segments<N>> = true;
template <class Predicate>
inline constexpr bool is_how<Modules<Predicate>> = true;

template <class How>
inline constexpr std::size_t segments_of = 0;
template <auto N>
inline constexpr std::size_t segments_of<Segments<N>> = Segments<N>::number;

template <class How>
inline constexpr bool by_module = false;
template <class Predicate>
inline constexpr bool by_module<Modules<Predicate>> = true;

}  // namespace detail

/// Activation checkpointing: keeps only the activations between segments, and recomputes the others
/// in backward.
///
/// Lever   memory: a batch or a model that would not fit into memory.
/// Cost    a second forward pass in backward, except for the last segment and for whatever follows
///         the last tensor that a segment saves; no host sync.
/// State   none. Gradients, and so the run, are bit for bit the same as without it.
/// Errors  SettingsError if a predicate matches no module, or if the first forward pass finds
///         nothing to segment; the ModuleErrors of recompute().
/// Source  Chen et al., "Training deep nets with sublinear memory cost" (2016).
///
///    Recompute<Segments<8>>, Recompute<Modules<OfType<Block>>>
template <class How = Segments<Auto>>
struct Recompute {
  static_assert(detail::is_how<How>,
                "frugal: Recompute<...>: unknown option. Options: Segments<N>, Segments<Auto>, "
                "Modules<OfType<Block>>.");
  using kind = kinds::recompute;
  using listens = list<on::fit_begin, around::forward>;

  static constexpr About about{Term::memory, "in backward, one more forward pass"};

  /// Into how many a list is divided; 0: about the square root of its length. Not with Modules<...>.
  std::size_t segments = detail::segments_of<How>;

  class State {
   public:
    // The first forward pass finds the segment to keep again.
    using transient = void;

    explicit State(Recompute const& settings) {
      if constexpr (requires { plan_.most; }) plan_.most = settings.segments;
    }

    void on_fit_begin(FitBegin& phase) { look_at(base_module(phase.module())); }

    template <class Next>
    Loss around_forward(Forward const& phase, Next&& next) {
      if (!phase.training || !at::GradMode::is_enabled()) return next();
      look_at(base_module(phase.module()));
      detail::SegmentedPass pass{.plan = plan_, .kept = kept_};
      Loss loss = [&] {
        Installed const installed(*module_, pass);
        return next();
      }();
      if (pass.ran == 0) refuse_whole();
      kept_ = pass.ran > 1 ? pass.ran - 1 : detail::SegmentedPass::none;
      return loss;
    }

   private:
    /// For the duration of a forward pass, makes this thread's pass a segmented one and swaps in
    /// the segmented Sequentials.
    class [[nodiscard]] Installed {
     public:
      Installed(detail::SegmentedModule& module, detail::SegmentedPass& pass)
          : swapped_(module), before_(std::exchange(detail::segmented_pass, &pass)) {}
      Installed(Installed const&) = delete;
      Installed& operator=(Installed const&) = delete;
      ~Installed() { detail::segmented_pass = before_; }

     private:
      detail::SegmentedModule::SwappedIn swapped_;
      detail::SegmentedPass* before_;
    };

    void look_at(torch::nn::Module& root) {
      if (module_) return;
      if constexpr (detail::by_module<How>) find_wanted(root);
      module_ = std::make_unique<detail::SegmentedModule>(root, plan_,
                                                          /*outermost=*/!detail::by_module<How>);
    }

    template <class Predicate>
    static bool matches(Modules<Predicate>, std::string const& name,
                        torch::nn::Module const& module) {
      return Predicate{}(std::string_view(name), module);
    }

    void find_wanted(torch::nn::Module& root) {
      std::string some;
      for (auto const& item : root.named_modules("", /*include_self=*/false)) {
        if (matches(How{}, item.key(), *item.value())) plan_.wanted.insert(item.value().get());
        if (some.size() < 80) some += (some.empty() ? "" : ", ") + item.key();
      }
      if (!plan_.wanted.empty()) return;
      throw SettingsError(
          {.what = "the predicate of Recompute<Modules<...>> matches no module",
           .where = "Recompute",
           .why = some.empty() ? "the module has no submodules" : "there are " + some + ", ...",
           .fix = "Match these names, match by type with Modules<OfType<Block>>, or write "
                  "Recompute<Segments<Auto>>."});
    }

    [[noreturn]] static void refuse_whole() {
      throw SettingsError({.what = "Recompute found nothing to segment in the forward pass",
                           .where = "Recompute",
                           .why = detail::by_module<How>
                                      ? "no module that the predicate matches was called through "
                                        "a Sequential or frugal::each"
                                      : "it called no Sequential and no frugal::each",
                           .fix = "Put the layers into a torch::nn::Sequential, iterate over a "
                                  "ModuleList with frugal::each(list, x, call), or call "
                                  "frugal::recompute(f, x) in forward and remove Recompute."});
    }

    detail::SegmentPlan<How> plan_;
    std::unique_ptr<detail::SegmentedModule> module_;
    std::size_t kept_ = detail::SegmentedPass::none;
  };
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/recompute.ipp>
#endif
