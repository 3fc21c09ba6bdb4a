// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_writer.hpp>
#include <frugal/report/doctor/levers.hpp>
#include <frugal/report/doctor/machine.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace frugal::doctor {

namespace detail {

class JsonReport {
 public:
  std::string of(Machine const& machine) {
    out_.object(frugal::detail::JsonLayout::lines).add("version", 1);
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
    return out_.str("\n");
  }

 private:
  void cpu(Cpu const& cpu) {
    object("cpu", [&] {
      add("model", cpu.model);
      add("processors", cpu.processors);
      add("vectors", cpu.vectors());
      add("bf16", cpu.bf16());
      add("fp16", cpu.fp16());
      add("int8", cpu.int8());
    });
  }
  void limits(Machine const& machine) {
    Limits const& limits = machine.limits;
    object("threads", [&] {
      add("usable", limits.threads());
      if (limits.affinity) add("affinity", *limits.affinity);
      if (limits.quota) add("cgroup_quota", *limits.quota);
      add("libtorch", machine.torch_threads);
    });
    object("memory_bytes", [&] {
      add("machine", limits.memory);
      add("available", limits.memory_available);
      add("cgroup_limit", limits.memory_limit);
    });
    add("cgroup_version", limits.cgroup);
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
        add("size", matmul.size);
        add("fp32_flops_per_second", matmul.fp32);
        add("bf16_flops_per_second", matmul.bf16);
      });
    }
    array("attention", machine.attention, [&](AttentionKernel const& each) {
      add("format", each.format);
      add("causal", each.causal);
      add("masked", each.masked);
    });
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

  template <class Value>
  void add(std::string_view name, Value const& value) {
    out_.add(name, value);
  }
  void add(std::string_view name, std::vector<std::string> const& values) {
    out_.key(name).array();
    for (std::string const& value : values) out_.value(value);
    out_.end();
  }
  template <class Body>
  void object(std::string_view name, Body const& body) {
    out_.key(name).object();
    body();
    out_.end();
  }
  template <class Items, class Body>
  void array(std::string_view name, Items const& items, Body const& body) {
    out_.key(name).array();
    for (auto const& item : items) {
      out_.object();
      body(item);
      out_.end();
    }
    out_.end();
  }

  frugal::detail::JsonWriter out_;
};

}  // namespace detail

/// All that the doctor found, and its recommendations, as one JSON object.
inline std::string json(Machine const& machine) { return detail::JsonReport().of(machine); }

}  // namespace frugal::doctor
