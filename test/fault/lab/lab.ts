import type { Evidence, ProviderCount } from '../checker/evidence.ts';
import type { Caller, Tenant } from '../client/caller.ts';
import type { RoutedTier } from '../../../shared/contracts/chat-request.ts';
import type { AdminApi } from '../../../scripts/harness/admin-api.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import type { RedisInspector } from './inspect-redis.ts';
import type { Store } from './victim-stores.ts';
import type { RedisGroup, RedisGroupKind } from './victim-groups.ts';
import type { Victim } from './victim.ts';

export interface LabOptions {
  /** Settings of docs/spec.md#settings for every ingress and worker. */
  settings?: Record<string, string>;
  /** Defaults of the simulated provider (scripts/simulated-provider/settings.ts). */
  provider?: string;
  /** The model behind each tier, with settings that win over `provider`. Default: `sim`. */
  models?: Partial<Record<RoutedTier, string>>;
  /** Calls at once at each model; else found, from a few at once. */
  maxInFlight?: number;
  /** Default: one server. */
  redis?: RedisGroupKind;
  /** Default: 1. */
  shards?: number;
  ingresses?: number;
  workers?: number;
  /** Folders of other versions of the project, for the processes that the lab starts with. Default: this version. */
  roots?: { ingress?: string; worker?: string };
  /** Of its tenants, where the version that makes them knows other limits. Default: none stops them. */
  limits?: Record<string, unknown>;
  /** What an earlier version is known to leave behind in an account, by its name in AccountState. */
  leftBehind?: readonly string[];
  /** Whether each process reaches the stores by paths of its own, which `Lab.pathsOf` breaks. They take time. Default: false. */
  ownPaths?: boolean;
  /** Whether request records outlive the experiment, so that the checker may miss them. Default: true. */
  keepsRecords?: boolean;
}

/** Of one process to the stores. */
export interface Paths {
  redis: TcpProxy;
  mongo: TcpProxy;
}

/** A process that shows its metrics. */
export interface Worker extends Victim {
  metricsUrl: string;
}

export interface Ingress extends Worker {
  /** Without a path. */
  url: string;
  adminUrl: string;
}

/** Two ingresses and two workers as a user starts them, over stores of their own, and the simulated provider. */
export interface Lab {
  signal: AbortSignal;
  caller: Caller;
  redis: Store;
  /** Where `redis` asks for several servers. */
  redisGroup: RedisGroup;
  /** Where Redis has its data. */
  redisDir: string;
  mongo: Store;
  inspector: RedisInspector;
  /** Those that run, oldest first. */
  ingresses: Ingress[];
  workers: Worker[];
  /** Where `ownPaths` asks for them. */
  pathsOf(process: Worker): Paths;
  /** `root`: as LabOptions.roots. */
  startIngress(settings?: Record<string, string>, root?: string): Promise<Ingress>;
  startWorker(settings?: Record<string, string>, root?: string): Promise<Worker>;
  /** An ingress of those that run, in turn. */
  urlOf(index: number): string;
  /** A tenant that no limit but its credits stops, with a key; `more`: other fields of the tenant. */
  openTenant(credits: number, more?: Record<string, unknown>, mode?: 'live' | 'test'): Promise<Tenant>;
  /** The administration of the ingress that was started last. */
  admin(): AdminApi;
  /** Where the simulated provider answers, for providers of another name. */
  providerUrl: string;
  /** The sum of a metric's values on a process's metrics page. */
  metric(process: Worker, name: string): Promise<number>;
  /** What a process still needs after a garbage collection, in bytes. */
  liveBytes(victim: Victim): Promise<number>;
  providerCounts(): Promise<Map<string, ProviderCount>>;
  /** Waits for a condition; throws with `what` when it does not come true. */
  waitFor(check: () => boolean | Promise<boolean>, what: string, timeoutMs?: number): Promise<void>;
  /** Waits until every client's request has ended, and what was accepted without one too. */
  untilEnded(timeoutMs?: number): Promise<void>;
  /** What is left once nothing moves any more, and all processes have been stopped. */
  gather(): Promise<Evidence>;
  /** Ends everything at once; safe to repeat. Keeps the logs. */
  close(): Promise<void>;
}
