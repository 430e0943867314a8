import { describe, expect, it } from '@jest/globals';
import { createModelSettings } from '../../../../scripts/simulated-provider/model-settings.ts';

describe('createModelSettings', () => {
  it('lets the model name win over a change, and a change over the start', () => {
    const models = createModelSettings({ chunks: 1, words: 1, tokens: 1 });
    models.change({ words: 2, tokens: 2 });

    expect(models.forModel('sim?tokens=3')).toMatchObject({
      name: 'sim',
      settings: { chunks: 1, words: 2, tokens: 3 },
    });
  });

  it('applies a change to a model name that it has seen before', () => {
    const models = createModelSettings({});
    models.forModel('sim?chunks=3');
    models.change({ words: 9 });

    expect(models.forModel('sim?chunks=3').settings).toMatchObject({ chunks: 3, words: 9 });
  });

  it('takes one change back with null and all of them with restore', () => {
    const models = createModelSettings({ words: 5 });
    models.change({ words: 6, fail: 'reset' });
    models.change({ words: null });
    expect(models.current()).toMatchObject({ words: 5, fail: 'reset' });

    models.restore();
    expect(models.current()).toMatchObject({ words: 5, fail: 'none' });
  });

  it('keeps the settings it has when a change is refused', () => {
    const models = createModelSettings({ words: 5 });

    expect(() => {
      models.change({ words: 'many' });
    }).toThrow('words must be a number.');
    expect(models.current().words).toBe(5);
  });

  it('refuses settings without a model', () => {
    expect(() => createModelSettings({}).forModel('?chunks=3')).toThrow('model must have a name before its settings');
  });
});
