import type { Express } from 'express';

/** What Express keeps of a route or a router that is mounted; it has no types for it. */
interface Layer {
  route?: { path: string; methods: Record<string, boolean> };
  handle?: { stack?: Layer[] };
  /** Where it is mounted. */
  rawPath: string;
}

function collect(layers: readonly Layer[], base: string): string[] {
  return layers.flatMap(({ route, handle, rawPath }) => {
    if (route !== undefined) {
      const methods = Object.keys(route.methods).filter((method) => method !== '_all');
      return methods.map((method) => `${method} ${base}${route.path}`);
    }
    return handle?.stack === undefined ? [] : collect(handle.stack, base + rawPath.replace(/\/$/, ''));
  });
}

/** Every route that an app has, as the API document writes them: `get /platform/v1/keys/{key_id}`. */
export function routesOf(app: Express): string[] {
  // Express's own type of its router hides the stack.
  const { stack } = app.router as unknown as { stack: Layer[] };
  return collect(stack, '').map((route) =>
    route.replaceAll(/[:*](\w+)/g, (_whole, name: string) => `{${name.replaceAll(/[A-Z]/g, '_$&').toLowerCase()}}`),
  );
}
