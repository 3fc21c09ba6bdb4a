// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_text.hpp>
#include <frugal/base/number_texts.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/written_name.hpp>
#include <frugal/report/doctor/machine.hpp>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal::doctor {

/// A recommendation: a lever, whether to use it here, why, and where it is documented.
struct Recommendation {
  bool use = false;
  std::string lever = {};
  std::string why = {};
  std::string page = {};  ///< below docs/
};

namespace detail {

/// "2.3".
inline std::string one_digit(double number) { return frugal::detail::fixed(number, 1); }

/// A BF16 product must beat FP32 by this, since the casts of a step cost as well.
inline constexpr double worthwhile = 1.2;

class Levers {
 public:
  explicit Levers(Machine const& machine) : machine_(machine) {}

  std::vector<Recommendation> all() {
    faults();
    threads();
    precision();
    device();
    memory();
    data();
    price();
    // std::stable_partition would warn: libstdc++'s calls a deprecated function.
    std::vector<Recommendation> sorted;
    for (bool const use : {true, false}) {
      for (Recommendation const& each : list_) {
        if (each.use == use) sorted.push_back(each);
      }
    }
    list_ = std::move(sorted);
    return std::move(list_);
  }

 private:
  void use(std::string lever, std::string why, std::string page) {
    list_.push_back({true, std::move(lever), std::move(why), std::move(page)});
  }
  void avoid(std::string lever, std::string why, std::string page) {
    list_.push_back({false, std::move(lever), std::move(why), std::move(page)});
  }
  bool trains_on_gpu() const { return machine_.torch_has_cuda && !machine_.gpus.all.empty(); }
  bool all_gpus(bool (Gpu::*has)() const) const {
    return std::all_of(machine_.gpus.all.begin(), machine_.gpus.all.end(),
                       [has](Gpu const& gpu) { return (gpu.*has)(); });
  }

  void faults() {
    if (!machine_.gpus.all.empty() && !machine_.torch_has_cuda) {
      use("a LibTorch with CUDA", "this one cannot use the GPU", "install.md");
    }
  }

  void threads() {
    auto const allowed = static_cast<int>(machine_.limits.threads());
    if (machine_.torch_threads <= allowed || allowed == 0) return;
    use("OMP_NUM_THREADS=" + std::to_string(allowed),
        "LibTorch starts " + std::to_string(machine_.torch_threads) + " threads, and " +
            std::to_string(allowed) + " may run: the rest is throttled",
        "doctor.md");
  }

  /// A policy's own sentence wins over the flags of the CPU; a measurement wins over both.
  void precision() {
    double const ratio =
        machine_.matmul && machine_.matmul->bf16 > 0 ? machine_.matmul->ratio() : 0;
    std::string const measured = "a BF16 product is " + one_digit(ratio) + " x as fast as FP32";
    std::string const page = "policy/precision.md";
    if (trains_on_gpu() && !all_gpus(&Gpu::bf16)) {
      if (all_gpus(&Gpu::fp16)) {
        use("Precision<FP16>", "matrix units for FP16, none for BF16; scales the loss", page);
      }
      return avoid("Precision<BF16>", "a GPU below compute capability 8.0 has no BF16", page);
    }
    if (ratio >= worthwhile) {
      use("Precision<BF16>", measured, page);
    } else if (ratio > 0) {
      avoid("Precision<BF16>", measured + ", and the casts cost as well", page);
    } else if (trains_on_gpu() || machine_.cpu.bf16()) {
      use("Precision<BF16>", "native BF16; not measured here", page);
    }
    if (!trains_on_gpu() && machine_.cpu.int8()) {
      use("Precision<INT8>",
          "linear layers took 0.33 of FP32's time on a CPU with VNNI; compare losses", page);
    }
    for (Caution const& caution : machine_.cautions) {
      bool const known = std::any_of(list_.begin(), list_.end(), [&](Recommendation const& each) {
        return each.lever == caution.policy;
      });
      if (!known) avoid(caution.policy, caution.text, caution.page);
    }
  }

  void device() {
    if (trains_on_gpu()) {
      use("DevicePrefetch<>", "copies the next batch during the current step",
          "policy/device_prefetch.md");
      use("CudaGraph<WholeStep>", "one launch per step, where small kernels wait for the host",
          "policy/cuda_graph.md");
      return;
    }
    use("KeepHostMemory", "freed memory is kept for the next step", "policy/keep_host_memory.md");
    avoid("DevicePrefetch<>, CudaGraph", "there is no GPU that LibTorch can use", "gpu.md");
  }

  void memory() {
    constexpr double small_gpu = 24.0 * (1 << 30);
    if (trains_on_gpu()) {
      double const bytes = static_cast<double>(machine_.gpus.all.front().memory);
      if (bytes > small_gpu) return;
      return use(
          "Recompute, Accumulate<Auto>",
          frugal::detail::bytes_text(bytes) + " of GPU memory: larger batches and modules fit",
          "policy/recompute.md");
    }
    auto const usable = machine_.limits.usable_memory();
    if (!usable || static_cast<double>(*usable) > small_gpu / 3) return;
    use("Accumulate<N>",
        frugal::detail::bytes_text(static_cast<double>(*usable)) +
            " of memory: an effective batch that does not fit",
        "policy/accumulate.md");
  }

  void data() {
    constexpr double slow_read = 200e6;  // bytes per second: below an SSD on SATA
    constexpr double slow_write = 400e6;
    std::size_t const threads = machine_.limits.threads();
    if (threads > 1) {
      use("loader(set)", std::to_string(threads) + " threads may run: some can read ahead",
          "data/loading.md");
    } else if (threads == 1) {
      avoid("loader with workers", "one thread may run, so workers take from training",
            "data/loading.md");
    }
    if (!machine_.disk || !machine_.disk->why_not.empty()) return;
    Disk const& disk = *machine_.disk;
    if (disk.read_rate() > 0 && disk.read_rate() < slow_read) {
      use("TarSet, RecordSet",
          "the disk reads " + one_digit(disk.read_rate() / 1e6) + " MB/s: read shards in sequence",
          "data/shards.md");
    }
    if (disk.write_rate() > 0 && disk.write_rate() < slow_write) {
      use("Checkpoint<..., Async>",
          "1 GB takes " + one_digit(1e9 / disk.write_rate()) +
              " s to write: training need not wait",
          "policy/checkpoint.md");
    }
    if (disk.file_system == "tmpfs" || disk.file_system == "ramfs") {
      avoid("a run in " + disk.folder, "it is memory, and is lost with the machine",
            "policy/checkpoint.md");
    }
  }

  void price() {
    if (machine_.cloud.empty()) {
      use("Spot<SigtermSave>", "a preempted run saves, and continues elsewhere", "spot.md");
      return;
    }
    std::string const name = machine_.cloud == "aws"   ? "Aws"
                             : machine_.cloud == "gcp" ? "Gcp"
                                                       : "Azure";
    bool const built = std::find(machine_.components.begin(), machine_.components.end(),
                                 "notices") != machine_.components.end();
    use("Spot<..., Notices<" + name + ">>",
        built ? "this cloud announces preemptions: a spot machine costs less"
              : "this cloud announces preemptions; needs FRUGAL_NOTICES=ON",
        "policy/notices.md");
  }

  Machine const& machine_;
  std::vector<Recommendation> list_;
};

}  // namespace detail

/// Which levers fit this machine and which do not, the ones to use first.
inline std::vector<Recommendation> levers_for(Machine const& machine) {
  return detail::Levers(machine).all();
}

/// The cautions that apply on this machine, in the policies' own words, which explain() prints as well.
template <class... Ps>
std::vector<Caution> cautions(bool on_gpu) {
  std::vector<Caution> all;
  auto const add = [&]<class P>(std::type_identity<P>) {
    std::string text = P::caution(on_gpu);
    if (text.empty()) return;
    all.push_back({.policy = frugal::detail::policy_name<P>(),
                   .text = std::move(text),
                   .page = std::string(P::kind::page)});
  };
  (add(std::type_identity<Ps>{}), ...);
  return all;
}

}  // namespace frugal::doctor
