/**
 * A service, its tenants and their calls for a whole test file. Each `use…` stands at the top of a file or of a
 * `describe` and registers its own hooks; what it returns can be used inside of tests and hooks.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';

import { lazily } from './lazily.ts';
import type { Started } from './lazily.ts';
import { startAdmin } from './admin.ts';
import type { TestAdmin } from './admin.ts';
import { startService } from './service.ts';
import type { ServiceOptions, TenantOptions, TestService, TestTenant } from './service.ts';
import { apiOf } from './tenant-api.ts';
import type { CallApi } from './tenant-api.ts';

/** Ends of what is open in this file. Jest runs hooks in one order only, and what was opened last needs the others. */
const ends: (() => Promise<unknown>)[] = [];

/** Runs from before the first test to after the last one; what was opened last is closed first. */
export function useStarted<T extends { close(): Promise<unknown> } | { quit(): Promise<unknown> }>(
  name: string,
  start: () => Promise<T>,
): T {
  const started: Started<T> = { value: undefined };
  beforeAll(async () => {
    const value = await start();
    started.value = value;
    ends.push(() => ('close' in value ? value.close() : value.quit()));
  });
  afterAll(() => ends.pop()?.());
  return lazily(started, name);
}

/** One for each test. */
export function useEach<T extends { close(): Promise<unknown> }>(name: string, start: () => Promise<T>): T {
  const started: Started<T> = { value: undefined };
  beforeEach(async () => {
    started.value = await start();
  });
  afterEach(() => started.value?.close());
  return lazily(started, name);
}

/** Options that depend on what a hook has started come by a function. */
export function useService(
  options: ServiceOptions | (() => ServiceOptions | Promise<ServiceOptions>) = {},
): TestService {
  return useStarted('service', async () => startService(typeof options === 'function' ? await options() : options));
}

export function useAdmin(overrides?: Parameters<typeof startAdmin>[0]): TestAdmin {
  return useStarted('administration', () => startAdmin(overrides));
}

/** The administration, without providers and tiers before each test. Every test fails that has an error logged. */
export function useRoutingAdmin(): TestAdmin {
  const admin = useAdmin();
  afterEach(async () => {
    expect(admin.errors).toEqual([]);
    await Promise.all([
      admin.models.providers.deleteMany({}),
      admin.models.tiers.deleteMany({}),
      admin.models.tierVersions.deleteMany({}),
      admin.models.publishedModels.deleteMany({}),
    ]);
  });
  return admin;
}

/** One tenant for all tests. */
export function useTenant(service: TestService, options?: TenantOptions): TestTenant {
  const started: Started<TestTenant> = { value: undefined };
  beforeAll(async () => {
    started.value = await service.startTenant(options);
  });
  return lazily(started, 'tenant');
}

/** A tenant of its own for each test. */
export function useTenantPerTest(service: TestService, options?: TenantOptions): TestTenant {
  const started: Started<TestTenant> = { value: undefined };
  beforeEach(async () => {
    started.value = await service.startTenant(options);
  });
  return lazily(started, 'tenant');
}

/** The public API as the tenant that is there when it is called. */
export function useApi(service: TestService, tenant: TestTenant): CallApi {
  return (...call) => apiOf(service, tenant.key)(...call);
}
