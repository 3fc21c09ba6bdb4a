// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/sink/exposition.hpp>

#include "support/locales.hpp"

#include <limits>
#include <string>

namespace frugal_test::policy_sink_exposition {

using frugal::MetricRecord;
using frugal::RecordKind;
using frugal::detail::Exposition;

bool has(std::string const& text, std::string const& line) {
  return ('\n' + text).find('\n' + line + '\n') != std::string::npos;
}

TEST_CASE("a record becomes counters and gauges with HELP and TYPE") {
  Exposition values;
  MetricRecord record{.kind = RecordKind::step, .name = "step", .at = {.epoch = 1, .step = 20}};
  record.seconds = 2.5;
  record.add("loss", 0.25)
      .add("lr_factor", 0.5)
      .add("learning_rate", 0.25)
      .add("topK@5", std::uint64_t{3});
  record.add("text", std::string("no number"));
  values.take(record);
  std::string const text = values.text({{"job", "a"}});
  CHECK(has(text, "# HELP frugal_steps_total Optimizer steps of this process"));
  CHECK(has(text, "# TYPE frugal_steps_total counter"));
  CHECK(has(text, "frugal_steps_total{job=\"a\"} 20"));
  CHECK(has(text, "frugal_training_seconds_total{job=\"a\"} 2.5"));
  CHECK(has(text, "# TYPE frugal_loss gauge"));
  CHECK(has(text, "frugal_loss{job=\"a\"} 0.25"));
  CHECK(has(text, "frugal_learning_rate_factor{job=\"a\"} 0.5"));
  CHECK(has(text, "# HELP frugal_learning_rate Learning rate of the first parameter group"));
  CHECK(has(text, "frugal_learning_rate{job=\"a\"} 0.25"));
  CHECK(has(text, "frugal_top_k_5{job=\"a\"} 3"));
  CHECK(text.find("text") == std::string::npos);
}

TEST_CASE("units are base units") {
  Exposition values;
  MetricRecord record;
  record.add("hours", 2.0).add("kilowatt_hours", 0.5).add("kg_co2", 0.25).add("dollars", 9.5);
  values.take(record);
  CHECK(has(values.text({}), "frugal_billed_seconds 7200"));
  CHECK(has(values.text({}), "frugal_energy_joules 1800000"));
  CHECK(has(values.text({}), "frugal_emissions_grams 250"));
  CHECK(has(values.text({}), "frugal_cost_dollars 9.5"));
}

TEST_CASE(
    "a user's name that frugal gives to its own later is numbered, and neither overwrites the "
    "other") {
  Exposition values;
  MetricRecord record{.kind = RecordKind::step};
  values.take(record.add("epoch_loss", 7.0).add("projected_cost_dollars", 8.0));
  MetricRecord later{.kind = RecordKind::epoch};
  values.take(later.add("loss", 0.5).add("dollars_projected", 9.0));
  CHECK(has(values.text({}), "frugal_epoch_loss_2 7"));
  CHECK(has(values.text({}), "frugal_projected_cost_dollars_2 8"));
  CHECK(has(values.text({}), "frugal_epoch_loss 0.5"));
  CHECK(has(values.text({}), "frugal_projected_cost_dollars 9"));
}

TEST_CASE("losses of steps, of epochs and of validations are three metrics") {
  Exposition values;
  for (auto const kind : {RecordKind::step, RecordKind::epoch, RecordKind::validation}) {
    MetricRecord record{.kind = kind};
    values.take(record.add("loss", static_cast<double>(kind)));
  }
  CHECK(has(values.text({}), "frugal_loss 1"));
  CHECK(has(values.text({}), "frugal_validation_loss 2"));
  CHECK(has(values.text({}), "frugal_epoch_loss 3"));
}

TEST_CASE("events are counted by their names") {
  Exposition values;
  for (char const* name : {"resume", "rollback", "rollback"}) {
    MetricRecord record{.kind = RecordKind::event, .name = name};
    values.take(record.add("seconds_lost", 7.0));
  }
  CHECK(has(values.text({{"run", "x"}}), "frugal_events_total{event=\"rollback\",run=\"x\"} 2"));
  CHECK(has(values.text({}), "frugal_events_total{event=\"resume\"} 1"));
  CHECK(values.text({}).find("seconds_lost") == std::string::npos);
}

TEST_CASE("a validation's metric and a user's value of its name keep their values apart") {
  Exposition values;
  for (int i = 0; i < 2; ++i) {
    MetricRecord validation{.kind = RecordKind::validation}, step{.kind = RecordKind::step};
    values.take(validation.add("accuracy", 0.5));
    values.take(step.add("validation_accuracy", 0.75));
  }
  CHECK(has(values.text({}), "frugal_validation_accuracy 0.5"));
  CHECK(has(values.text({}), "frugal_validation_accuracy_2 0.75"));
}

TEST_CASE("two names that become one keep their values apart") {
  Exposition values;
  for (int i = 0; i < 2; ++i) {
    MetricRecord record;
    values.take(record.add("a b", 1.0).add("a-b", 2.0).add("loss", 3.0).add("Loss", 4.0));
  }
  CHECK(has(values.text({}), "frugal_a_b 1"));
  CHECK(has(values.text({}), "frugal_a_b_2 2"));
  CHECK(has(values.text({}), "frugal_loss 3"));
  CHECK(has(values.text({}), "frugal_loss_2 4"));
}

MetricRecord at(RecordKind kind, std::uint64_t step, double seconds) {
  MetricRecord record{.kind = kind, .name = "x", .at = {.step = step, .sample = 4 * step}};
  record.seconds = seconds;
  return record;
}

TEST_CASE("a counter begins at 0 in each process and never falls; how far the run is, is a gauge") {
  Exposition values;
  values.take(at(RecordKind::begin, 1000, 60));  // a resume
  CHECK(has(values.text({}), "frugal_steps_total 0"));
  CHECK(has(values.text({}), "frugal_run_steps 1000"));
  CHECK(has(values.text({}), "frugal_training_seconds_total 0"));
  CHECK(has(values.text({}), "# TYPE frugal_run_steps gauge"));
  values.take(at(RecordKind::step, 1010, 70));
  values.take(at(RecordKind::event, 1004, 70));  // a rollback, and its steps again
  CHECK(has(values.text({}), "frugal_steps_total 10"));
  CHECK(has(values.text({}), "frugal_run_steps 1004"));
  values.take(at(RecordKind::step, 1012, 80));
  CHECK(has(values.text({}), "frugal_steps_total 18"));
  CHECK(has(values.text({}), "frugal_samples_total 72"));
  CHECK(has(values.text({}), "frugal_run_samples 4048"));
  CHECK(has(values.text({}), "frugal_training_seconds_total 20"));
  CHECK(has(values.text({}), "frugal_run_training_seconds 80"));
}

TEST_CASE("a metric has one help, whatever the names of the log that became its name") {
  auto const help_of = [](RecordKind kind, std::string const& field, std::string const& metric) {
    Exposition values;
    MetricRecord record{.kind = kind};
    values.take(record.add(field, 1.0));
    std::string const text = values.text({});
    std::size_t const begin = text.find("# HELP " + metric + ' ');
    REQUIRE(begin != std::string::npos);
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  CHECK(help_of(RecordKind::step, "topK@5", "frugal_top_k_5") ==
        help_of(RecordKind::step, "top_k_5", "frugal_top_k_5"));
  CHECK(help_of(RecordKind::validation, "accuracy", "frugal_validation_accuracy") ==
        help_of(RecordKind::step, "validation_accuracy", "frugal_validation_accuracy"));
}

TEST_CASE("a user's name is no counter's without _total: OpenMetrics has one metric of a name") {
  Exposition values;
  MetricRecord record{.kind = RecordKind::step};
  values.take(record.add("tokens", 3.0).add("events", 4.0));
  CHECK(has(values.text({}), "frugal_tokens_2 3"));
  CHECK(has(values.text({}), "frugal_events_2 4"));
}

TEST_CASE("the version of frugal is a label of a gauge that is 1") {
  Exposition const values;
  CHECK(has(values.text({{"job", "a"}, {"version", "mine"}}),
            "frugal_build_info{job=\"a\",version=\"" + std::string(frugal::version) + "\"} 1"));
  CHECK(has(values.text({}), "# TYPE frugal_build_info gauge"));
}

TEST_CASE("no locale changes a number") {
  frugal_test::support::GroupedLocale const grouped;
  frugal_test::support::CommaLocale const comma;
  Exposition values;
  MetricRecord record{.kind = RecordKind::step, .at = {.step = 1234567}};
  values.take(record.add("loss", 1234.5));
  CHECK(has(values.text({}), "frugal_steps_total 1234567"));
  CHECK(has(values.text({}), "frugal_loss 1234.5"));
}

using frugal::PrometheusLabels;
using frugal::detail::checked_labels;
using frugal::detail::is_label_name;

TEST_CASE("names of labels are letters, digits and underscores") {
  CHECK(is_label_name("job"));
  CHECK(is_label_name("_a1"));
  for (char const* name : {"", "1a", "a-b", "__a", "event", "le", "quantile", "a b"})
    CHECK_FALSE(is_label_name(name));
}

TEST_CASE("the run directory is a label, unless the user has set that one") {
  CHECK(checked_labels({}, "runs/a", "here") == PrometheusLabels{{"run", "runs/a"}});
  CHECK(checked_labels({{"run", "x"}}, "runs/a", "here") == PrometheusLabels{{"run", "x"}});
  CHECK(checked_labels({{"job", "x"}}, "", "here") == PrometheusLabels{{"job", "x"}});
}

TEST_CASE("a label that each scrape has is told, since Prometheus renames it") {
  using frugal::detail::label_advice;
  CHECK(label_advice({{"model", "x"}, {"run", "y"}}, "Prometheus").empty());
  CHECK(label_advice({{"job", "x"}}, "Prometheus").starts_with("Prometheus has the label job, "));
  CHECK(label_advice({{"job", "x"}, {"instance", "y"}}, "Prometheus")
            .starts_with("Prometheus has the label instance and job, "));
}

TEST_CASE("a label that promtool complains of is refused, with the reason") {
  CHECK_THROWS_WITH_AS(static_cast<void>(checked_labels({{"le", "1"}}, "", "Prometheus::labels")),
                       doctest::Contains("belong to histograms and summaries"),
                       frugal::SettingsError);
}

using frugal::detail::prometheus_escaped;
using frugal::detail::prometheus_name;
using frugal::detail::prometheus_number;

TEST_CASE("numbers are as Prometheus writes them") {
  double const infinity = std::numeric_limits<double>::infinity();
  CHECK(prometheus_number(std::numeric_limits<double>::quiet_NaN()) == "NaN");
  CHECK(prometheus_number(infinity) == "+Inf");
  CHECK(prometheus_number(-infinity) == "-Inf");
  CHECK(prometheus_number(0.1) == "0.1");
  CHECK(prometheus_number(1e300) == "1e+300");
}

TEST_CASE("names become snake_case, and keep no suffix of another kind") {
  CHECK(prometheus_name("accuracy") == "accuracy");
  CHECK(prometheus_name("validLoss") == "valid_loss");
  CHECK(prometheus_name("F1") == "f1");
  CHECK(prometheus_name("test/top-5 acc.") == "test_top_5_acc");
  CHECK(prometheus_name("a\nb\"c\\") == "a_b_c");
  CHECK(prometheus_name("\xc3\xa4rger") == "rger");
  CHECK(prometheus_name("") == "unnamed");
  CHECK(prometheus_name("::") == "unnamed");
  CHECK(prometheus_name("error_total") == "error_total_value");
  CHECK(prometheus_name("hits_count") == "hits_count_value");
}

TEST_CASE("texts are escaped, and bytes that are not UTF-8 are replaced") {
  CHECK(prometheus_escaped("a\\b\"c\nd", true) == "a\\\\b\\\"c\\nd");
  CHECK(prometheus_escaped("a\"b", false) == "a\"b");
  CHECK(prometheus_escaped("\xff", true) == "\xef\xbf\xbd");
}

}  // namespace frugal_test::policy_sink_exposition
