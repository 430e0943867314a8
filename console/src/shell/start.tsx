import { QueryClientProvider } from '@tanstack/preact-query';
import { render } from 'preact';
import type { ComponentChild } from 'preact';
import { Router } from 'wouter-preact';

import { queries } from './api.ts';
import { useHashPath } from './router.ts';

/** Puts a face into its page. */
export function start(app: ComponentChild): void {
  const place = document.getElementById('app');
  if (place === null) return;
  render(
    <QueryClientProvider client={queries}>
      <Router hook={useHashPath}>{app}</Router>
    </QueryClientProvider>,
    place,
  );
}
