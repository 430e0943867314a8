/** Outlines on a grid of 16, drawn for this console. */
const PATHS = {
  overview: 'M2 8.500 8 3l6 5.500M3.500 7.500V13h9V7.500M6.500 13V9.500h3V13',
  playground: 'M3 3.500h10v7H7.500L4.500 13v-2.500H3zM5.500 6.500h5M5.500 8.300h3',
  requests: 'M2.500 4h11M2.500 8h7M2.500 12h9M13 7.500v1',
  usage: 'M2.500 13.500v-11M2.500 13.500h11M5.500 11V8M8.500 11V5M11.500 11V7',
  billing: 'M2 4.500h12v7.500H2zM2 7h12M4.500 9.800h2.500',
  keys: 'M10.500 9a3.300 3.300 0 1 0-3.200-2.500L2.500 11.300V13.500h2.200v-1.700h1.700v-1.700h1.200l.6-.6A3.300 3.300 0 0 0 10.500 9zM11.300 5.100h.01',
  entities: 'M8 7.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM3 13.500c.4-2.500 2.300-4 5-4s4.600 1.500 5 4',
  batches: 'M8 2 14 5 8 8 2 5zM2 8l6 3 6-3M2 11l6 3 6-3',
  webhooks:
    'M6 6.500a2.300 2.300 0 1 1 2.800.6L6.800 10.700M5 9.200a2.300 2.300 0 1 0 1.700 2.800h4M10 12a2.300 2.300 0 1 0 .2-2.200L8.400 6.300',
  compliance: 'M8 2 13 4v4c0 3-2 5-5 6-3-1-5-3-5-6V4zM5.800 8l1.600 1.600L10.500 6.500',
  audit: 'M4 2.500h6l2.500 2.500v8.500H4zM10 2.500V5h2.500M6 8h4.500M6 10.500h4.500',
  fleet: 'M2.500 3h11v4h-11zM2.500 9h11v4h-11zM5 5h.01M5 11h.01M8 5h3M8 11h3',
  providers: 'M4.500 11.500a2.700 2.700 0 0 1-.2-5.300 3.800 3.800 0 0 1 7.300-.8 3.100 3.100 0 0 1-.3 6.100z',
  tenants: 'M3 13.500v-11h6v11M9 6.500h4v7M1.500 13.500h13M5 5.500h2M5 8h2M5 10.500h2M11 9h.01M11 11.200h.01',
  settlement: 'M3 5.500h9.500L10 3M13 10.500H3.500L6 13',
  docs: 'M2.500 3.500c2-.8 4-.8 5.500.5 1.500-1.300 3.500-1.300 5.500-.5v9c-2-.8-4-.8-5.500.5-1.500-1.300-3.500-1.300-5.500-.5zM8 4v9',
  queues: 'M2.500 4h11M2.500 8h11M2.500 12h6',
  menu: 'M2.500 4.500h11M2.500 8h11M2.500 11.500h11',
  sun: 'M8 10.700a2.700 2.700 0 1 0 0-5.400 2.700 2.700 0 0 0 0 5.400zM8 1.500V3M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M3.400 12.600l1-1M11.600 4.400l1-1',
  moon: 'M13.500 9.500A5.800 5.800 0 0 1 6.500 2.500a5.800 5.800 0 1 0 7 7z',
  copy: 'M5.500 5.500h8v8h-8zM3.500 10.500h-1v-8h8v1',
  check: 'M3 8.500 6.500 12 13 4.500',
  exit: 'M6.500 2.500h-4v11h4M6.500 8h7M10.500 5l3 3-3 3',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The page's own icon: only the build knows its address. */
export const Logo = () => <img src={document.querySelector<HTMLLinkElement>('link[rel="icon"]')?.href} alt="" />;
