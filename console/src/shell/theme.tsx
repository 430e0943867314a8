import { useState } from 'preact/hooks';

import { Icon } from '../ui/icon.tsx';
import { Button } from '../ui/parts.tsx';

type Theme = 'light' | 'dark';

/** The only thing that the console keeps in the browser: a wish that differs from the system's. */
const NAME = 'parley-theme';

function show(theme: string | null): void {
  if (theme === null) delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
}

show(localStorage.getItem(NAME));

const current = (): Theme =>
  (document.documentElement.dataset['theme'] ??
    (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark'
    ? 'dark'
    : 'light';

export function ThemeToggle() {
  const [theme, setTheme] = useState(current);
  const other = theme === 'dark' ? 'light' : 'dark';
  return (
    <Button
      kind="quiet"
      aria-label={`Use the ${other} theme`}
      title={`Use the ${other} theme`}
      onClick={() => {
        localStorage.setItem(NAME, other);
        show(other);
        setTheme(other);
        dispatchEvent(new Event('themechange'));
      }}
    >
      <Icon name={theme === 'dark' ? 'sun' : 'moon'} />
    </Button>
  );
}
