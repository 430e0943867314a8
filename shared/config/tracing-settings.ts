import Joi from 'joi';

const ROOTS = ['always_on', 'always_off', 'traceidratio'];

/** Those of OpenTelemetry's samplers that need no other service. */
export const sampler = Joi.string()
  .valid(...ROOTS, ...ROOTS.map((root) => `parentbased_${root}`))
  .default('parentbased_always_on');

/** OpenTelemetry's own variables, as far as they are read here. */
export interface TracingSettings {
  OTEL_EXPORTER_OTLP_ENDPOINT?: string;
  OTEL_SERVICE_NAME?: string;
  OTEL_TRACES_SAMPLER: string;
  OTEL_TRACES_SAMPLER_ARG: number;
}

export interface TracingConfig {
  /** `/v1/traces` is appended to it. */
  endpoint: string;
  serviceName?: string;
  sampler: string;
  /** The share of traces that `traceidratio` takes, 0 to 1. */
  samplerArg: number;
}

/** Undefined: there is no collector, so nothing is traced. */
export function tracingOf(settings: TracingSettings): TracingConfig | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SERVICE_NAME: serviceName } = settings;
  if (endpoint === undefined) return undefined;
  return {
    endpoint,
    sampler: settings.OTEL_TRACES_SAMPLER,
    samplerArg: settings.OTEL_TRACES_SAMPLER_ARG,
    ...(serviceName === undefined ? {} : { serviceName }),
  };
}
