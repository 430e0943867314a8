import { createBoundedMap } from './bounded-map.ts';
import type { Settings, SettingsByName, SettingsInput } from './settings.ts';
import { mergeSettings, parseSettings, parseSettingsQuery, SettingsError, toSettings } from './settings.ts';

/** A test may make up any number of model names; the settings of this many are remembered. */
const MODELS_MAX = 1_000;

export interface ModelSettings {
  /** Splits `sim?chunks=40`; the settings behind the `?` win over those of the server. Throws SettingsError. */
  forModel(model: string): { name: string; settings: Settings };
  /** Lays settings of unknown origin over the server's; null takes one back to what it was at the start. */
  change(input: unknown): void;
  /** Takes back every change. */
  restore(): void;
  current(): SettingsByName;
}

/** The settings of one server: what it started with, what was changed since, what a model name adds. */
export function createModelSettings(defaults: SettingsInput): ModelSettings {
  const start = parseSettings(defaults);
  const known = createBoundedMap<{ name: string; settings: Settings }>(MODELS_MAX);
  let changes: SettingsInput = {};

  function read(model: string): { name: string; settings: Settings } {
    const mark = model.indexOf('?');
    const name = mark === -1 ? model : model.slice(0, mark);
    if (name === '') throw new SettingsError('model must have a name before its settings, as in sim?chunks=40.');
    const own = mark === -1 ? {} : parseSettingsQuery(model.slice(mark + 1));
    return { name, settings: toSettings(mergeSettings(start, changes, own)) };
  }

  return {
    forModel(model) {
      const found = known.get(model) ?? read(model);
      known.set(model, found);
      return found;
    },
    change(input) {
      changes = { ...changes, ...parseSettings(input) };
      known.clear();
    },
    restore() {
      changes = {};
      known.clear();
    },
    current: () => mergeSettings(start, changes),
  };
}
