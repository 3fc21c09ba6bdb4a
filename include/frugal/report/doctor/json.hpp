// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_text.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/report/doctor/levers.hpp>
#include <frugal/report/doctor/machine.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::doctor {

namespace detail {

// RapidJSON's writer adds to a null pointer, which the sanitizers refuse.
class JsonReport {
 public:
  std::string of(Machine const& machine) {
    object([&] {
      add("version", std::uint64_t{1});
      object("versions", [&] {
        for (auto const& [name, number] : machine.versions) add(name, number);
      });
      add("components", machine.components);
      add("missing_components", machine.missing_components);
      cpu(machine.cpu);
      limits(machine);
      gpus(machine);
      measured(machine);
      object("cloud", [&] {
        add("name", machine.cloud);
        add("text", machine.cloud_text);
      });
      levers(machine);
    });
    return std::move(out_) + '\n';
  }

 private:
  void cpu(Cpu const& cpu) {
    object("cpu", [&] {
      add("model", cpu.model);
      add("processors", std::uint64_t{cpu.processors});
      add("vectors", cpu.vectors());
      add("bf16", cpu.bf16());
      add("fp16", cpu.fp16());
      add("int8", cpu.int8());
    });
  }
  void limits(Machine const& machine) {
    Limits const& limits = machine.limits;
    object("threads", [&] {
      add("usable", std::uint64_t{limits.threads()});
      if (limits.affinity) add("affinity", std::uint64_t{*limits.affinity});
      if (limits.quota) add("cgroup_quota", *limits.quota);
      add("libtorch", static_cast<std::uint64_t>(machine.torch_threads));
    });
    object("memory_bytes", [&] {
      add("machine", limits.memory);
      add("available", limits.memory_available);
      add("cgroup_limit", limits.memory_limit);
    });
    add("cgroup_version", static_cast<std::uint64_t>(limits.cgroup));
  }
  void gpus(Machine const& machine) {
    object("gpus", [&] {
      add("driver", machine.gpus.driver);
      add("cuda", machine.gpus.cuda);
      add("fault", machine.gpus.fault);
      add("libtorch_has_cuda", machine.torch_has_cuda);
      array("devices", machine.gpus.all, [&](Gpu const& gpu) {
        add("model", gpu.model);
        add("memory_bytes", gpu.memory);
        add("compute_capability", std::to_string(gpu.major) + "." + std::to_string(gpu.minor));
      });
    });
  }
  void measured(Machine const& machine) {
    if (machine.matmul) {
      Matmul const& matmul = *machine.matmul;
      object("matmul", [&] {
        add("device", matmul.device);
        add("size", static_cast<std::uint64_t>(matmul.size));
        add("fp32_flops_per_second", matmul.fp32);
        add("bf16_flops_per_second", matmul.bf16);
      });
    }
    if (!machine.disk) return;
    Disk const& disk = *machine.disk;
    object("disk", [&] {
      add("folder", disk.folder);
      add("file_system", disk.file_system);
      add("free_bytes", disk.free);
      add("not_measured", disk.why_not);
      if (!disk.why_not.empty()) return;
      add("bytes", disk.bytes);
      add("write_bytes_per_second", disk.write_rate());
      add("read_bytes_per_second", disk.read_rate());
      add("read_past_cache", disk.read_past_cache);
    });
  }
  void levers(Machine const& machine) {
    array("levers", levers_for(machine), [&](Recommendation const& each) {
      add("use", each.use);
      add("lever", each.lever);
      add("why", each.why);
      add("page", "docs/" + each.page);
    });
  }

  void key(std::string_view name) {
    line();
    text(name);
    out_ += ": ";
  }
  void text(std::string_view raw) {
    // A name in a file of the kernel may hold any bytes.
    frugal::detail::append_json(out_, frugal::detail::as_utf8(raw));
  }
  void add(std::string_view name, std::string_view value) { key(name), text(value); }
  void add(std::string_view name, std::string const& value) { key(name), text(value); }
  void add(std::string_view name, bool value) { key(name), out_ += value ? "true" : "false"; }
  void add(std::string_view name, std::uint64_t value) { key(name), out_ += std::to_string(value); }
  void add(std::string_view name, double value) {
    key(name);
    frugal::detail::append_json(out_, value);  // null if it is not finite
  }
  void add(std::string_view name, std::optional<std::uint64_t> value) {
    key(name);
    out_ += value ? std::to_string(*value) : "null";
  }
  void add(std::string_view name, std::vector<std::string> const& values) {
    key(name);
    within('[', ']', [&] {
      for (std::string const& value : values) line(), text(value);
    });
  }
  template <class Body>
  void object(Body const& body) {
    within('{', '}', body);
  }
  template <class Body>
  void object(std::string_view name, Body const& body) {
    key(name);
    object(body);
  }
  template <class Items, class Body>
  void array(std::string_view name, Items const& items, Body const& body) {
    key(name);
    within('[', ']', [&] {
      for (auto const& item : items) line(), object([&] { body(item); });
    });
  }

  /// A new line for the next member, after the one before it.
  void line() {
    if (!is_empty()) out_ += ',';
    out_ += '\n' + std::string(2 * depth_, ' ');
  }
  template <class Body>
  void within(char open, char close, Body const& body) {
    out_ += open;
    ++depth_;
    body();
    --depth_;
    if (!is_empty()) out_ += '\n' + std::string(2 * depth_, ' ');
    out_ += close;
  }
  /// Whether nothing is in the object or array yet: strings end with a quote.
  bool is_empty() const { return out_.back() == '{' || out_.back() == '['; }

  std::string out_;
  std::size_t depth_ = 0;
};

}  // namespace detail

/// All that the doctor found, and its recommendations, as one JSON object.
inline std::string json(Machine const& machine) { return detail::JsonReport().of(machine); }

}  // namespace frugal::doctor
