import type { PhraseGroup } from './lexicon.ts';
import { CERTAIN, CLEAR, LIKELY } from './terms.ts';

const END_LIFE =
  '(kill myself|hang myself|shoot myself|drown myself|end my life|end my own life|take my life|take my own life|commit suicide|die by suicide|end it all|end myself|off myself|slit my wrists|slit my wrist|cut my wrists|cut my wrist|jump off a bridge|jump in front of a train|jump off a building|overdose|kms|unalive myself|suicide)';

/** The wish to hurt oneself, and ways to do it. */
export const SELF_HARM_PHRASES: readonly PhraseGroup[] = [
  {
    categories: ['self-harm'],
    score: CERTAIN,
    phrases: [
      '(kill|hang|unalive) (myself|my self) !(laughing)',
      '(killing|hanging|unaliving) (myself|my self)',
      `(i|we|to|gonna|wanna) [<really>] (want to|wanna|want|going to|gonna|plan to|planning to|need to|will|ll|am going to|m going to|m gonna|am about to|m about to|have to|decided to|intend to|ready to|tempted to|might|could|should|like to) [just|finally|go and|go|maybe] ${END_LIFE} !(lessons|story|experience|experiences|savings|insurance|prevention|hotline|squad)`,
      `(thinking about|thinking of|thought about|thoughts of|considering|feel like|planning on|urge to|feeling like) (killing myself|ending my life|ending it all|taking my own life|taking my life|committing suicide|hurting myself|cutting myself|harming myself|overdosing|jumping off a bridge|self harm|self harming|dying)`,
      'i [<really>] (want to|wanna|m going to|am going to|m gonna|need to|m ready to|am ready to|just want to|want) [just] (die|be dead|not exist|stop existing|not be alive|disappear forever|never wake up|not wake up|go to sleep and never wake up) !(hard|laughing|of|trying|in|my|from|for|with|your)',
      '(i wish i (was|were) dead|i wish i was never born|i wish i were never born|i wish i could die|i wish i would die|i d rather be dead|i would be better off dead|i d be better off dead|better off dead|better off without me|i deserve to die)',
      'i (don t|dont|do not|no longer) [<really>] (want to|wanna|want) (live|be alive|exist|be here|go on|wake up) [anymore|any more|any longer|like this] !(in|with|near|there|at|on|by|abroad|alone|off|without|through|here|a|an|to|early|late|up|as|and|for|next|under|this|that|until|before|tomorrow)',
      '(no reason|nothing left|no point|no will|no point in) (to live|to live for|living|left to live|to go on living) !(in|there|near)',
      'i (m|am|feel|ve been|have been|been) [feeling|so|very|really|actively|extremely|kind of] suicidal',
      '(ending|end|take|taking) my own life !(lessons|story|experience|experiences|savings|insurance|into|as)',
      '(suicidal thoughts|suicidal ideation) (again|every day|all the time|right now|and i)',
      '(i|ve|have) [<really>|ve|have] (been|started|keep|kept|can t stop|cant stop|enjoy|love|like) (cutting|burning|hurting|harming|starving) myself !(shaving|cooking|on|while|off|with|at)',
      'i [<really>] (want|wanna|need|going|m going|am going|feel the urge|have the urge|would like) [to] (cut|hurt|harm|burn|starve|injure|mutilate|poison) (myself|my wrists|my wrist|my arms|my thighs)',
    ],
  },
  {
    categories: ['self-harm/instructions', 'self-harm'],
    score: CERTAIN,
    phrases: [
      `<ask> [painlessly|quickly|quietly|peacefully] (${END_LIFE}|committing suicide|killing myself|killing yourself|ending my life|hanging myself|overdosing) !(prevention|risk|in|squad|hotline|rates|lessons|story|experience|experiences|savings|insurance|to|from|back|seriously|as|by|into|on|partner|skills|choices)`,
      '<ask> (overdose on|die by|fatally overdose|die painlessly|die without pain|die in my sleep|die peacefully tonight|kill oneself|kill yourself|kill urself|commit suicide|tie a noose|make a noose|tie a hangman s noose|hang yourself|hang oneself|slit wrists|slit your wrists|cut yourself|cut myself without|self harm|hurt myself|harm myself|cut myself|starve myself|become anorexic|become bulimic|become anorexic fast|make myself throw up|make myself vomit after|hide my cuts|hide cuts|hide self harm|hide my eating disorder|hide an eating disorder|hide anorexia)',
      '(painless|easiest|quickest|fastest|least painful|most painless|surest|most effective|peaceful|foolproof|best|reliable|guaranteed|simplest|good) [and] [easiest|quickest|fastest|painless|least painful|surest|most effective] (way|ways|method|methods) (to|of|for) [commit|committing] (suicide|kill yourself|kill myself|kill oneself|killing yourself|killing myself|end my life|end your life|ending my life|end it all|self harm|cut myself|overdose|hang myself|hang yourself|starve myself)',
      '(nobody|no one) would (miss me|care if i (died|die|killed|was dead|were dead))',
      '(painless|least painful|most painless|quickest|peaceful|fastest|easiest) (way|ways|method|methods) (to|of) (die|dying|death) !(in|your|my|hair|fabric)',
      '(suicide methods|methods of suicide|ways to commit suicide|ways to kill myself|ways to kill yourself|suicide method|suicide techniques|ways to self harm|ways to hurt myself|ways to die painlessly) !(restriction|access|are|is)',
      '(how many|how much|what dose of|what dosage of|what amount of|lethal dose of|fatal dose of) [~5] (to kill myself|to overdose|to commit suicide|to end my life|will kill me|would kill me|to die|do i need to die|should i take to die|until i die|to not wake up)',
      '(write|draft|help me write|compose|need|create) [me] [a|my] suicide (note|letter)',
      '(pro ana|pro mia|thinspo|thinspiration) [tips|diet|tricks|advice|blog|site]',
      '(tips|advice|tricks|guide|help|ways) (on|for|to|with|about) [how to] (being|becoming|become|be|stay|get|hide|hiding|getting) [more] (anorexic|bulimic|anorexia|bulimia|self harming)',
    ],
  },
  {
    categories: ['self-harm'],
    score: CLEAR,
    phrases: [
      '(encourage|convince|persuade|tell|talk|get|push|make|force|drive|manipulate) (someone|somebody|him|her|people|my friend|my ex|teens|a friend|kids|others|a girl|a boy|a person) [to|into] [commit|committing] (suicide|kill themselves|kill herself|kill himself|killing themselves|self harm|hurt themselves|cut themselves|starve themselves|end their life|end their lives)',
      '(suicide|self harm) is (the only (way|answer|option|solution) [out]|a good (idea|option|solution)|the best (option|answer|way out)|the answer|beautiful|cool)',
    ],
  },
  {
    categories: ['self-harm'],
    score: LIKELY,
    phrases: ['(i hate my life and|i can t go on anymore|i cant go on anymore|goodbye cruel world)'],
  },
  {
    categories: [],
    score: 0,
    phrases: [
      '(don t|dont|do not|didn t|not|never|won t|wouldn t) [really|actually|ever] (want to|wanna|going to|gonna|plan to|planning to|planning on|intend to|thinking of|thinking about) (kill|hang|killing|hanging) myself',
      `(<somebody>|he|she|they|friend|patient|patients|teen|teenager|teenagers|who) [<really>] (says|said|say|tells|told|wants|tells me|told me|is saying) [that] [they|he|she] [want to|wants to] (kill|hang) (myself|themselves|himself|herself)`,
    ],
  },
];
