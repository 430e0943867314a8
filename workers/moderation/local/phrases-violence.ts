import type { PhraseGroup } from './lexicon.ts';
import { CERTAIN, CLEAR } from './terms.ts';

/** Words behind `I will shoot him` that make it a photograph or a message. */
const SHOOT_WHAT =
  '!(a|an|the|some|for|in|at|on|during|from|using|over|tomorrow|this|outdoors|outside|indoors|portraits|running|dancing|with|s|against|while|messages|emails|an|another)';

/** Violence announced, wished for or enjoyed. */
export const VIOLENCE_PHRASES: readonly PhraseGroup[] = [
  {
    categories: ['violence'],
    score: CERTAIN,
    phrases: [
      '<intend> [fucking|go and|go|brutally|slowly|secretly] (kill|murder|stab|strangle|behead|torture|slaughter|lynch|rape|poison|assassinate|decapitate|dismember|butcher|execute|mutilate) (him|her|<somebody>|<kin>|that (guy|girl|man|woman|bitch|bastard|kid|teacher|asshole|motherfucker|person)|this (guy|girl|man|woman|bitch|bastard|kid|person)|my bully|my bullies|the (president|king|queen|prime minister|mayor|governor|senator|judge|ceo|teacher|principal|pope|cops|police)|all of them|as many people|them all|everyone in|people in|cops|politicians|a (cop|police officer|president|senator|judge|celebrity)) !(<notpeople>)',
      '<intend> [fucking|go and|go|just] shoot (everyone|everybody|someone|somebody|him|her|cops|a cop|my (boss|teacher|wife|husband|classmates|neighbor|neighbour|coworkers|ex|dad|mom|brother|sister)|the president|people in the head|that (bitch|bastard|asshole|motherfucker)) ' +
        SHOOT_WHAT,
      '<intend> shoot (him|her|everyone|everybody|someone|people|them|my (boss|teacher|wife|husband|classmates|coworkers)) ((at|in) (the|a|my) (mall|school|office|church|concert|airport|crowd|class|mosque|synagogue)|dead|in the head|in the face|with a gun|with my gun|with my dad s gun|to death|at school|at work)',
      '<intend> (beat|stab|choke|burn|bludgeon|whip) (him|her|<somebody>|<kin>|them) (to death|alive|until (he|she|they) (dies|die|stops breathing|stop breathing|bleeds|bleed)|to a pulp)',
      '(thinking about|thinking of|fantasize about|fantasizing about|dream about|dreaming of|planning on|planning|looking forward to|feel like|enjoy|urge to|considering) (killing|murdering|stabbing|strangling|torturing|raping|kill|murder|stab|poisoning|shooting up) (him|her|<somebody>|<kin>|animals|puppies|kittens) !(<notpeople>)',
      '<intend> [really|just|fucking] (hurt|harm|injure|attack) (someone|somebody|people|others|innocent people|everyone|everybody|him|her|<kin>|children|kids|animals) !(feelings|s|but|by|if|when|with)',
      '(let s|lets|let us) (go and|go|just|all) (kill|murder|shoot|stab|rape|lynch|behead) (everyone|everybody|him|her|them all|all of them|someone|somebody|people|<kin>) !(<notpeople>|off|in|at|with)',
      '(let s|lets|let us) (kill|murder|shoot|stab|rape|lynch|behead) (everyone|everybody|him|her|them all|all of them|someone|somebody|people|<kin>) !(<notpeople>|off|in|with)',
      '(i|we) [<really>] (want|hope|wish) (him|her|them|everyone|<kin>|all of them) (dead|to die|to suffer and die|killed|murdered|to burn)',
    ],
  },
  {
    categories: ['violence', 'illicit/violent'],
    score: CERTAIN,
    phrases: [
      '<ask> [brutally|painfully|secretly|quietly|silently] (kill|murder|assassinate|strangle|stab|behead|torture|suffocate|drown|decapitate|dismember|slaughter|killing|murdering|assassinating|torturing|stabbing|stalking|stalk) (<somebody>|<kin>|my bully|the (president|king|prime minister|mayor|pope)|[a|the] (president|senator|prime minister|person|cop|celebrity) [in]) !(<notpeople>)',
      '<ask> (kill|murder|torture|stab|strangle) (him|her|these people|those people|that (guy|girl|man|woman|bitch|kid)|this (guy|girl|man|woman|bitch|kid)) (and (get away|not get caught|hide|make it look)|without (getting caught|leaving|being caught|anyone)|in (his|her|their) sleep|with poison|painfully|slowly)',
      '<ask> get away with murder !(is|was|tv|show|season|episode|series|cast|starring|by|on|like|characters|finale|and|s|about)',
      '<ask> shoot (someone|somebody|a person|him|her|<kin>) (in the head|dead|with a gun|from a distance|without getting caught|and get away|to death)',
      '<ask> poison (<somebody>|him|her|<kin>|a water supply|the water supply|drinking water|a reservoir|[a|the|my|my neighbor s|my neighbors|my neighbour s|my neighbours] (dog|dogs|cat|cats)|someone s (food|drink|coffee|tea)|food)',
      '<ask> plan [a|the|my] [perfect|brutal] (murder|robbery|bank robbery|kidnapping|assassination|massacre|terrorist attack|bombing|school shooting|mass shooting|rape|hit on) !(mystery|party|game|themed|scene|novel|story|investigation)',
      '<ask> (abuse|hurt|harm|choke|starve|injure|beat|slap|hit|punish and beat) (a child|a kid|a baby|a woman|children|my (wife|kids|kid|child|children|son|daughter|girlfriend|husband|boyfriend|baby|partner|mother)) !(at|in|to|on|by|this|next|s|less|during|feelings|if|or|with|up|when)',
      '<ask> (abuse|hurt|beat|hit) (a child|my (wife|kids|kid|child|girlfriend|son|daughter|baby)) without',
      '<ask> (torture|abuse|kill|hurt|maim|mutilate|skin|drown|set fire to) [a|an|the|my|some|my neighbor s|my neighbors|someone s] (animal|animals|cat|cats|dog|dogs|puppy|puppies|kitten|kittens|pet)',
      '<ask> (get away with (killing|a murder|rape)|(commit|committing) [a|the] [perfect] (murder|murders|mass murder|homicide|massacre|genocide|mass shooting|school shooting|terrorist attack|terror attack|act of terrorism|arson|rape)|make (a murder|murder|a killing|his death|her death|someone s death|a death) look like) !(charges|cases)',
      '<ask> (dispose of|get rid of|hide|dissolve|bury|destroy|chop up|cut up|burn|disposing of|hiding|dissolving) (a|the|his|her|their|my victim s) (dead body|dead bodies|human corpse|corpse)',
      '<ask> (dispose of|disposing of|dissolve|bury|chop up|cut up|hide) (a|the|his|her|their) (body|bodies|human body) !(of|odor|odour|fat|hair|scroll|scrollbar|tag|element|overflow|text|class|content|part|parts|until|from|css|field|section|while|when|with|cam|camera|line|wave|paragraph|background|and|armor|language)',
      '<ask> [find|hire|pay|contact|become] [a|an] (hitman|hit man|contract killer|hired killer|assassin to kill|assassin to|hired assassin) !(game|in|3|2|go|build|absolution)',
      '<ask> [find|hire|pay|contact] (someone|somebody) to (kill|murder|hurt|beat up|rape|shoot) (<somebody>|him|her|<kin>)',
      '(hire|hiring|pay|paying) (a|an) (hitman|hit man|assassin|contract killer) (to kill|to murder|for|on the dark web|online)',
      '(<ask>|<intend>) [carry out|plan|commit|do|execute|organize|stage|conduct|start|launch|carrying out|committing|planning|executing] [a|an|the] (mass shooting|school shooting|mass murder|massacre|terrorist attack|terror attack|suicide bombing|suicide attack|car bombing|bombing|knife attack|acid attack|drive by shooting|killing spree|shooting spree|bomb attack|genocide|lone wolf attack) !(survivor|survivors|prevention|response|drill|drills|victims|memorial|plan|plans|is)',
      '(<ask>|<intend>) [really|just|fucking|start a fire to|start fires to] (shoot up|blow up|bomb|burn down|set fire to|attack|set on fire|destroy|sabotage|derail|hijack|gas|shooting up|blowing up|bombing|burning down) [a|an|the|my|this|that|our|his|her] [~1] <place> !(website|server|wall|number|record|run|transfer|bus|balloon|loan|balance|account|photo|picture|image|defense)',
      '(bring|bringing|take|smuggle|sneak) [a|my|my dad s|the] (gun|knife|weapon|bomb|rifle) (to|into) (school|class|my school|the airport|a plane|an airplane|work and)',
      '<ask> join (isis|isil|al qaeda|al qaida|boko haram|hamas|a terrorist group|a terrorist organization|a terror cell|the islamic state)',
      '<ask> (recruit|radicalize|radicalise) [~2] (terrorists|for isis|for al qaeda|jihadists|suicide bombers|child soldiers)',
      '<ask> (kidnap|kidnapping|abduct|abducting) (<somebody>|him|her|<kin>|a rich|the president)',
    ],
  },
  {
    categories: ['violence'],
    score: CLEAR,
    phrases: [
      '(graphic|gory|gruesome|extremely violent|ultra violent|bloody|sadistic|brutal|detailed) [and] [graphic|gory|gruesome|violent|bloody|detailed|brutal] (description|depiction|details|detail|account|video|videos|image|images|picture|pictures|photos|scene|story|torture) of [a|the|an|someone|somebody|people] [being] (torture|tortured|murder|murdered|beheading|beheaded|beheadings|rape|raped|mutilation|mutilated|dismemberment|dismembered|killing|killed|disembowelment|executed|decapitation|corpses|dead bodies|mass shooting|lynching|cannibalism)',
      '(graphic|gory|gruesome|sadistic|snuff) (torture|murder|rape|beheading|snuff|execution) (scene|scenes|story|video|videos|film|films|porn|fantasy)',
      '(snuff film|snuff films|snuff video|snuff videos|beheading video|beheading videos)',
      '(they|you all|all of them|everyone) (deserve|deserves) to (be killed|be slaughtered|be shot|be hanged|be tortured|burn alive|be murdered|be raped)',
      '(kill them all|murder them all|slaughter them all|kill em all) !(at|by|with|off|in)',
    ],
  },
  {
    categories: [],
    score: 0,
    phrases: [
      '<ask> (protect|defend|save|prevent|stop|help|identify|survive) ~4 (mass shooting|school shooting|terrorist attack|terror attack|bombing|knife attack|genocide|massacre)',
      '(learn|study|read|write|know|talk|research|discuss|understand) (about|on|more about) [a|the] [~2] (mass shooting|school shooting|terrorist attack|terror attack|bombing|genocide|massacre)',
    ],
  },
];
