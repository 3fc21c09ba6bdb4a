// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/report/sink/exposition.hpp>
#include <frugal/report/sink/listening_socket.hpp>
#include <frugal/report/sink/record.hpp>
#include <frugal/report/sink/state.hpp>

// Needs prometheus-cpp: FRUGAL_PROMETHEUS=ON, and the target frugal::prometheus.

namespace frugal::kinds {

struct prometheus_endpoint : optional_kind {
  static constexpr std::string_view name = "PrometheusEndpoint";
  static constexpr std::string_view page = "report/prometheus_endpoint.md";
  static constexpr bool once_per_run = true;
  static constexpr Stage stage = Stage::publish;
};

}  // namespace frugal::kinds

namespace frugal {

namespace detail {

/// The values that scrapes read. They are host memory, so a scrape waits for no device, and for
/// training only while a record is taken.
class ScrapedValues : public prometheus::Collectable {
 public:
  explicit ScrapedValues(PrometheusLabels labels) : labels_(std::move(labels)) {}

  void take(MetricRecord const& record) {
    std::lock_guard const lock(mutex_);
    exposition_.take(record);
    exposition_.stamp(unix_time());
  }

  template <class Archive>
  void persist(Archive& archive, bool keeps) {
    std::lock_guard const lock(mutex_);
    exposition_.persist(archive, keeps);
  }

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::lock_guard const lock(mutex_);
    std::vector<prometheus::MetricFamily> all;
    for (auto const& [name, family] : exposition_.families()) {
      prometheus::MetricFamily& to = all.emplace_back();
      to.name = name;
      to.help = family.help;
      to.type = family.counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
      for (auto const& [kind, value] : family.values) {
        prometheus::ClientMetric& metric = to.metric.emplace_back();
        // The serializer escapes the values; only UTF-8 is left to do.
        for (auto const& [label, text] : labels_) {
          // A label twice would make the whole scrape fail.
          if (kind.empty() || label != family.label) metric.label.push_back({label, as_utf8(text)});
        }
        if (!kind.empty()) metric.label.push_back({std::string(family.label), as_utf8(kind)});
        (family.counter ? metric.counter.value : metric.gauge.value) = value;
      }
    }
    return all;
  }

 private:
  mutable std::mutex mutex_;
  PrometheusLabels labels_;
  Exposition exposition_;
};

class PrometheusServer {
 public:
  static constexpr bool forgets = true;

  template <class Policy>
  explicit PrometheusServer(Policy const& policy)
      : address_(policy.address),
        port_(policy.port),
        labels_(policy.labels),
        listening_(&policy.listening) {}

  void open(FitBegin& phase) {
    listening_->clear();
    if (auto const text = label_advice(labels_, "PrometheusEndpoint"); !text.empty()) {
      phase.warn(text);
    }
    values_ = std::make_shared<ScrapedValues>(
        checked_labels(labels_, phase.settings().run_dir.string(), "PrometheusEndpoint::labels"));
    std::string const at = address_ + ":" + std::to_string(port_);
    ListeningSockets const before;
    try {
      // Its threads inherit the mask: a SIGTERM is for the program's own.
      BlockedSignals const blocked;
      exposer_ = std::make_unique<prometheus::Exposer>(at, 1);
      exposer_->RegisterCollectable(values_);
      auto const port = static_cast<std::uint16_t>(exposer_->GetListeningPorts().at(0));
      listening_->set(port);
      socket_ = before.added(port);
    } catch (std::exception const& error) {
      throw SettingsError({.what = "the endpoint of Prometheus cannot listen",
                           .where = at,
                           .why = error.what(),
                           .fix = "Check with `ss -ltn` whether another program has the port, and "
                                  "set another one; port 0 takes any that is free."});
    }
  }
  void write(MetricRecord const& record) {
    values_->take(record);
    if (!socket_ || socket_->listens()) return;
    throw std::runtime_error("nobody listens at port " + std::to_string(*listening_->get()) +
                             " any more");
  }
  template <class Archive>
  void persist(Archive& archive, SinkMoment const& now) {
    if (values_) values_->persist(archive, now.in_run);
  }
  /// The server's thread looks every two seconds whether it shall end, and after each connection.
  void close() {
    if (socket_) socket_->shut();
    exposer_.reset();
  }

 private:
  std::string address_;
  std::uint16_t port_;
  PrometheusLabels labels_;
  Outcome<std::uint16_t> const* listening_;
  std::shared_ptr<ScrapedValues> values_;
  std::optional<ListeningSocket> socket_;         ///< of the server, if it could be found
  std::unique_ptr<prometheus::Exposer> exposer_;  ///< ends before the values
};

}  // namespace detail

/// Serves the last values of a run over HTTP, as /metrics, while it is trained.
///
/// Lever   none: as Prometheus, without a file and without node_exporter.
/// Cost    at its cadence one copy of the values and, with the losses on a device, one host sync.
///         A scrape runs on a thread of the server, and waits for no device. Two system calls tell
///         whether the server still listens.
/// State   the means since the last record, and the last values.
/// Errors  SettingsError at the begin if the address cannot be listened at: a port in use is found
///         before anything is spent. A socket that dies later is a warning, once, and the records
///         that cannot be scraped are counted (`outcome`). Nothing later ends the run.
///
/// Anyone who reaches the address can read the values: there is no password and no encryption, so
/// the default is this machine alone.
template <class Cadence = Every<100>>
struct PrometheusEndpoint {
  static_assert(detail::option::cadence::has<Cadence>,
                "frugal: PrometheusEndpoint<Cadence>: the option is a cadence, such as Every<100> "
                "or Every<1, Epoch>.");

  using kind = kinds::prometheus_endpoint;
  using listens = detail::sink_listens;

  static constexpr About about{Term::none, "a copy of the values at its cadence"};

  Cadence every{};
  std::string address = "127.0.0.1";   ///< "0.0.0.0": every network of the machine
  std::uint16_t port = 9464;           ///< 0: any free one
  PrometheusLabels labels{};           ///< of every series; `run` is the run directory by default
  Outcome<SinkOutcome> outcome{};      ///< set by fit: what arrived, and what was lost
  Outcome<std::uint16_t> listening{};  ///< set at the begin of fit: the port

  using State = detail::SinkState<Cadence, detail::PrometheusServer>;
};

}  // namespace frugal
