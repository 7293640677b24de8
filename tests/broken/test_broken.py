"""The broken-model suite: bad inputs in files, and what is said about each: the element, the rule, the value, the fix.

A case is a file of one of the folders beside this one, and its sentence, in which `...` stands for anything. `urdf`,
`yaml` and `mjcf` are model files, `builder` calls in Python, `cli` arguments of the command line. What only the way a
number is written can get wrong is in tests/io, and more calls of the builder are in tests/model/test_bad_input.py.
"""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import cardan as cd
from cardan.cli import main

HERE = Path(__file__).parent

CASES = """
urdf/ampersand.urdf | line 2, column 18: the XML is malformed: not well-formed (invalid token)
urdf/attribute_twice.urdf | line 2, column 18: the XML is malformed: duplicate attribute
urdf/axis_nan.urdf | line 12: joint 'j': 'xyz' of <axis> must be finite, got 'nan'; leave out what is unknown or
urdf/axis_nearly_zero.urdf | line 9: joint 'j': axis (1e-13, 0.0, 0.0) has no direction; give a non-zero vector
urdf/axis_of_two.urdf | line 12: joint 'j': 'xyz' of <axis> must be 3 numbers, separated by blanks, got 2: '0 1'
urdf/axis_without_xyz.urdf | line 12: joint 'j': <axis> has no attribute 'xyz'; give it
urdf/centre_of_mass_nan.urdf | line 4: link 'a': 'xyz' of <origin> must be finite, got 'NaN'; leave out what is
urdf/cycle_of_three.urdf | line 1: robot: every link is the child of some joint, so there is no root; one link, the
urdf/cycle_off_the_root.urdf | line 3: link 'a': no chain of joints leads to it from the root 'base'; join it, or
urdf/damping_nan.urdf | line 12: joint 'j': 'damping' of <dynamics> must be finite, got 'nan'; leave out what is
urdf/document_type.urdf | the XML declares a document ... not need and which are never read; remove the <!DOCTYPE
urdf/empty.urdf | the file is empty
urdf/entities.urdf | the XML declares a document type ... not need and which are never read; remove the <!DOCTYPE
urdf/expansion_bomb.urdf | the XML declares a ... not need and which are never read; remove the <!DOCTYPE
urdf/inertia_about_the_link_frame.urdf | link 'b': ... triangle rule: 0.7 > 0.001 + 0.4 (...; did you give it about
urdf/inertia_entry_missing.urdf | line 5: link 'a': <inertia> has no attribute 'iyz'; give it
urdf/inertia_infinite.urdf | line 5: link 'a': 'izz' of <inertia> must be finite, got 'inf'; leave out what is
urdf/inertia_nan.urdf | line 5: link 'a': 'ixy' of <inertia> must be finite, got 'nan'; leave out what is unknown
urdf/inertia_without_mass.urdf | link 'a': mass is zero but its inertia is not (largest entry 1 kg m^2); give the mass
urdf/infinite_speed.urdf | line 12: joint 'j': 'velocity' of <limit> must be finite, got 'inf'; leave out what is
urdf/joint_backwards.urdf | line 1: robot: it has 2 roots, links that are no joint's child: 'a', 'c'; a robot has
urdf/joint_of_a_link_with_itself.urdf | line 9: joint 'j': parent and child are both 'a'; a joint connects two
urdf/joint_without_name.urdf | line 9: <joint> number 1: <joint> has no attribute 'name'; give it
urdf/joint_without_type.urdf | line 9: joint 'j': <joint> has no attribute 'type'; give it
urdf/latin_1.urdf | line 2: byte 0xe9 is not UTF-8 text; save the file as UTF-8, or check that it is a model file
urdf/limit_above_default.urdf | line 9: joint 'j': its lower ... upper limit 0 (one left out is 0); exchange them
urdf/limit_in_degrees.urdf | line 12: joint 'j': 'lower' of <limit> has '-90deg', which is not a number
urdf/limit_nan.urdf | line 12: joint 'j': 'lower' of <limit> must be finite, got 'nan'; leave out what is unknown
urdf/limits_reversed.urdf | line 9: joint 'j': its lower ... upper limit 1 (one left out is 0); exchange them
urdf/link_with_empty_name.urdf | line 2: <link> number 1: attribute 'name' of <link> is empty; give it
urdf/link_without_name.urdf | line 2: <link> number 1: <link> has no attribute 'name'; give it
urdf/mass_beyond_any_machine.urdf | line 4: link 'a': 'value' of <mass> is too large: '1e99'; check the unit
urdf/mass_in_words.urdf | line 4: link 'a': 'value' of <mass> has 'heavy', which is not a number
urdf/mass_infinite.urdf | line 4: link 'a': 'value' of <mass> must be finite, got '-Infinity'; leave out what is
urdf/mass_is_macro.urdf | line 4: link 'a': 'value' of <mass> has '${m}', a macro of xacro; expand the file first:
urdf/mass_nan.urdf | line 4: link 'a': 'value' of <mass> must be finite, got 'nan'; leave out what is unknown or
urdf/mass_of_two.urdf | line 4: link 'a': 'value' of <mass> must be 1 number, got 2: '1 2'
urdf/mass_overflows.urdf | line 4: link 'a': 'value' of <mass> must be ... is beyond the range of numbers
urdf/mass_with_comma.urdf | line 4: link 'a': 'value' of <mass> has '1,5', which is not a number; separate numbers by
urdf/mass_with_underscore.urdf | line 4: link 'a': 'value' of <mass> has '1_0', which is not a number
urdf/mass_without_value.urdf | line 4: link 'a': <mass> has no attribute 'value'; give it
urdf/massless_chain.urdf | link 'c': ... has no mass, so joint 'k' (prismatic) would move nothing; give it mass
urdf/massless_moving_link.urdf | link 'b': ... has no mass, so joint 'j' (revolute) would move nothing; give it mass
urdf/massless_planar.urdf | link 'b': ... has no mass, so joint 'j' (planar) would move nothing; give it mass
urdf/mimic_multiplier_in_words.urdf | line 27: joint 'k': 'multiplier' of <mimic> has 'twice', which is not a number
urdf/mimics_itself.urdf | line 9: joint 'j': it mimics itself; name the joint that it follows
urdf/mimics_nothing.urdf | line 12: joint 'j': <mimic> has no attribute 'joint'; give it
urdf/mimics_nowhere.urdf | line 9: joint 'j': it mimics 'k', which is not a joint of this file; known: 'j'
urdf/mismatched_tags.urdf | line 1, column 25: the XML is malformed: mismatched tag
urdf/mjcf_inside.urdf | the top element is <mujoco>, and must be <robot>; is it another format?
urdf/name_with_other_case.urdf | line 14: joint 'j': its parent 'base' is not a link of this file; did you mean
urdf/negative_damping.urdf | line 9: joint 'j': its damping is negative: -1; it would feed energy into the joint
urdf/negative_effort.urdf | line 9: joint 'j': its limit of effort is negative: -1; the limit is on the magnitude
urdf/negative_friction.urdf | line 9: joint 'j': its friction is negative: -0.1; it would feed energy into the joint
urdf/negative_inertia.urdf | link 'a': ... not positive: principal values -1, 1, 1 kg m^2; check signs
urdf/negative_mass.urdf | line 2: link 'a': mass is negative: -1 kg; a body has positive mass, or none (leave it out)
urdf/negative_speed.urdf | line 9: joint 'j': its limit of velocity is negative: -2; the limit is on the magnitude
urdf/no_child.urdf | line 9: joint 'j': it has no <child>; add one, such as <child link="..."/>
urdf/no_inertia.urdf | line 3: link 'a': it has no <inertia>; add one, such as <inertia ixx="..." ixy="..." .../>
urdf/no_link.urdf | line 1: robot: it has no <link>; a robot needs one link at least
urdf/no_mass.urdf | line 3: link 'a': it has no <mass>; add one, such as <mass value="1.0"/>
urdf/no_parent.urdf | line 9: joint 'j': it has no <parent>; add one, such as <parent link="..."/>
urdf/no_root.urdf | line 1: robot: every link is the child of some joint, so there is no root; one link, the base,
urdf/not_xml.urdf | line 1, column 1: the XML is malformed: syntax error
urdf/origin_infinite.urdf | line 12: joint 'j': 'xyz' of <origin> must be finite, got 'inf'; leave out what is
urdf/origin_of_four.urdf | line 12: joint 'j': 'rpy' of <origin> must be ... by blanks, got 4: '0 0 0 1'
urdf/origin_of_two.urdf | line 12: joint 'j': 'xyz' of <origin> must be 3 numbers, separated by blanks, got 2: '1 2'
urdf/parent_without_link.urdf | line 10: joint 'j': <parent> has no attribute 'link'; give it
urdf/products_too_large.urdf | link 'a': ... not positive: principal values -4, 1, 6 kg m^2; check signs
urdf/quaternion_far_off.urdf | line 12: joint 'j': ... has length 2, not 1: '0 0 0 2'; normalise it, and
urdf/quaternion_of_three.urdf | line 12: joint 'j': 'quat_xyzw' of ... by blanks, got 3: '0 0 1'
urdf/quaternion_reads_as_degrees.urdf | line 12: joint ... has length 90, not 1: '0 0 90 0'; normalise it, and
urdf/quaternion_zero.urdf | line 12: joint 'j': ... has length 0, not 1: '0 0 0 0'; normalise it, and
urdf/rotation_given_twice.urdf | line 12: joint 'j': <origin> has both 'rpy' and 'quat_xyzw'; give the rotation once
urdf/rpy_in_words.urdf | line 12: joint 'j': 'rpy' of <origin> has 'x', which is not a number
urdf/sdf_inside.urdf | the top element is <sdf>, and must be <robot>; is it another format?
urdf/three_roots.urdf | line 1: robot: it has 3 roots, links that are no joint's child: 'a', 'b', 'c'; a robot has
urdf/triangle_rule.urdf | link 'a': ... triangle rule: 10 > 1 + 1 (...; did you give it about
urdf/two_axes.urdf | line 9: joint 'j': it has 2 <axis> elements and may have one; remove the others
urdf/two_inertials.urdf | line 2: link 'a': it has 2 <inertial> elements and may have one; remove the others
urdf/two_joints_of_a_name.urdf | line 13: joint 'j': the name is given to two joints; joint names must differ
urdf/two_limits.urdf | line 9: joint 'j': it has 2 <limit> elements and may have one; remove the others
urdf/two_links_of_a_name.urdf | line 9: link 'a': the name is given to two links; link names must differ
urdf/two_masses.urdf | line 3: link 'a': it has 2 <mass> elements and may have one; remove the others
urdf/two_mimics.urdf | line 24: joint 'k': it has 2 <mimic> elements and may have one; remove the others
urdf/two_origins.urdf | line 9: joint 'j': it has 2 <origin> elements and may have one; remove the others
urdf/two_parents_in_a_joint.urdf | line 9: joint 'j': it has 2 <parent> elements and may have one; remove the others
urdf/two_trees.urdf | line 1: robot: it has 2 roots, links that are no joint's child: 'a', 'c'; a robot has one,
urdf/type_ball.urdf | line 9: joint 'j': type 'ball' is not a joint type of URDF; known: 'revolute', 'continuous',
urdf/type_misspelt.urdf | line 9: joint 'j': type 'revolut' is not a joint type of URDF; did you mean 'revolute'?
urdf/unclosed_top.urdf | line 1, column 1: the XML is malformed: unclosed token
urdf/unknown_child.urdf | line 9: joint 'j': its child 'z' is not a link of this file; known: 'a', 'b'
urdf/unknown_parent.urdf | line 9: joint 'j': its parent 'aa' is not a link of this file; did you mean 'a'?
urdf/utf_16.urdf | line 1: byte 0xff is not UTF-8 text; save the file as UTF-8, or check that it is a model file
urdf/web_page.urdf | the XML declares a document type ... not need and which are never read; remove the <!DOCTYPE
urdf/xacro_unexpanded.urdf | line 4: link 'a': 'value' of <mass> has '${m}', a macro of xacro; expand the file
urdf/xyz_empty.urdf | line 12: joint 'j': attribute 'xyz' of <origin> is empty; give it
urdf/zero_axis.urdf | line 9: joint 'j': axis (0.0, 0.0, 0.0) has no direction; give a non-zero vector
urdf/zero_inertia_floating.urdf | link 'b': ... has no inertia along ... joint 'j' (free) would ...
urdf/zero_inertia_on_its_axis.urdf | link 'b': ... has no inertia along ... joint 'j' (revolute) would ...
urdf/zero_normal.urdf | line 9: joint 'j': normal (0.0, 0.0, 0.0) has no direction; give a non-zero vector
yaml/alias.yaml | line 4: anchors and aliases are not read; give the number a name under 'parameters'
yaml/axes_not_square.yaml | line 10: joint 'A': axis1 and axis2 must be perpendicular, they make 45 degrees
yaml/axis_nan.yaml | line 12: joint 'A': axis[0] must be a number, got '.nan'; it must be finite: leave out what
yaml/axis_of_two.yaml | line 12: joint 'A': axis must be 3 numbers in brackets, [..., ..., ...], got 2
yaml/body_named_ground.yaml | line 4: body 'ground': the name is taken; bodies and frames must have different names
yaml/body_off_the_ground.yaml | line 5: body 'hand': it has no joint; connect it, for a floating body with
yaml/comments_only.yaml | the file has no content but comments
yaml/coupling_of_nothing.yaml | line 13: coupling ... differs from 0, got {'A': 0.0}; it couples nothing
yaml/coupling_to_nowhere.yaml | line 13: coupling 'c': joint 'B' is not one of the joints so far; known: 'A'
yaml/cut_of_no_joint.yaml | line 12: mechanism 'bad': cut 'B' is not a joint; known: 'A'
yaml/drive_on_no_joint.yaml | line 13: drive 'd': joint 'B' is not one of the joints so far; known: 'A'
yaml/drive_that_runs_code.yaml | line 13, column ... is not a function of this format; known: 'sin', 'cos',
yaml/drive_with_unknown_variable.yaml | line 13, column ... a parameter nor a variable here; known: 't', 'q',
yaml/free_of_no_number.yaml | model 'bad': parameter 'arm.weight' is not a number of 'arm'; free are 'arm.mass',
yaml/gravity_in_newtons.yaml | line 3: file: gravity[2] must be an ... and '-9.81 N' is a force (N)
yaml/gravity_of_two.yaml | line 3: file: gravity must be 3 numbers in brackets, [..., ..., ...], got 2
yaml/inertia_about_a_far_point.yaml | line 7: body 'arm': ... not positive: principal values -0.9, -0.9, 0.1 kg m^2
yaml/inertia_not_symmetric.yaml | line 6: body 'arm': inertia is not symmetric: entries differ by 0.2 kg m^2; did
yaml/inertia_without_mass.yaml | line 5: body 'arm': mass ... is not (largest entry 0.1 kg m^2); give the mass
yaml/island.yaml | line 5: body 'b': its joint 'B' leads to no ground; connect it, for a floating body with
yaml/joint_of_a_body_with_itself.yaml | line 10: joint 'A': parent and child are both 'arm'; a joint connects
yaml/judge_unknown.yaml | line 7: body 'arm': judge must be one of body, link, nothing, got 'nobody'; did you mean
yaml/limit_is_length.yaml | line 12: joint 'A': data.upper must be an angle (rad), and '3 mm' is a length (m)
yaml/limits_reversed.yaml | line 13: joint 'A': its lower ... is above its upper limit -1.5708; exchange them
yaml/list_at_top.yaml | line 1: the file must be a table of sections such as 'bodies:', got a list of 2
yaml/mass_infinite.yaml | line 5: body 'arm': mass must be a mass (kg), got '.inf'; it must be finite: leave out
yaml/mass_is_length.yaml | line 5: body 'arm': mass must be a mass (kg), and '20 mm' is a length (m)
yaml/mass_nan.yaml | line 5: body 'arm': mass must be a mass (kg), got '.nan'; it must be finite: leave out what
yaml/massless_moving_body.yaml | line 5: body 'arm': ... no mass, so joint 'A' (revolute) would ...; give it
yaml/motion_not_smooth.yaml | line 13: motion 'm': its rate at t = 0 is inf; give a function smooth from t = 0 on
yaml/negative_armature.yaml | line 12: joint 'A': armature must not be negative, got -0.1; it is an inertia
yaml/negative_damping.yaml | line 12: joint 'A': its damping is negative: -1; it would feed energy into the joint
yaml/negative_effort.yaml | line 12: joint 'A': its limit of effort is negative: -5; the limit is on the magnitude
yaml/negative_inertia.yaml | line 6: body 'arm': ... not positive: principal values -0.1, 0.1, 0.1 kg m^2; check signs
yaml/negative_mass.yaml | line 5: body 'arm': mass is negative: -2 kg; a body has positive mass, or none (leave
yaml/negative_stiffness.yaml | line 17: spring 's': stiffness must not be negative, got -5; it would feed energy in
yaml/no_bodies.yaml | line 1: mechanism 'bad': it has no body; add one with body(...)
yaml/no_version.yaml | line 1: the file does not say 'cardan: 1'; is it a mechanism of this format?
yaml/parameter_divides_by_zero.yaml | line 4, column 7: parameter 'a': value: '/' of 1, 0 has no finite value
yaml/parameters_in_a_circle.yaml | line 4: parameter 'a': value uses 'b', which is not defined above it; move one of
yaml/pitch_missing.yaml | line 9: joint 'A': 'pitch' must be given
yaml/python_tag.yaml | line 3: the tag 'tag:yaml.org,2002:python/object/apply:os.system' is not read; leave it out
yaml/quaternion_far_off.yaml | line 12: joint 'A': at ... 0., 0.] has length 1.41421, not 1; normalise it, and
yaml/quaternion_zero.yaml | line 12: joint 'A': at is ... 0., 0., 0.] has length 0, not 1; normalise it, and
yaml/rotation_given_twice.yaml | line 12: joint 'A': at is no pose: ... not as quaternion and as rpy
yaml/rotation_is_reflection.yaml | line 12: joint 'A': ... not a rotation matrix, R^T R = 1 is a reflection
yaml/rotation_stretches.yaml | line 12: joint 'A': ... not a rotation matrix, R^T R = 1 is off by 3
yaml/section_misspelt.yaml | line 5: file: there is no entry 'joint'; did you mean 'joints'?
yaml/snapping_too_wide.yaml | line 12: mechanism 'bad': snapping must be from 0 to 0.001, got 0.5
yaml/spring_of_a_body_with_itself.yaml | line 13: spring 's': body1 and body2 are both 'arm'; it acts between
yaml/tab_indent.yaml | line 4: it is indented with a tab; YAML wants blanks
yaml/triangle_rule.yaml | line 6: body 'arm': ... triangle rule: 0.5 > 0.1 + 0.1 (...; did you give it about
yaml/two_bodies_of_a_name.yaml | line 5: 'arm' is given twice, first in line 4; names in a table differ
yaml/two_documents.yaml | line 4: a second document begins here; one file describes one mechanism
yaml/type_misspelt.yaml | line 9: joint 'A': ... free, curvilinear, got 'hinge'; known: 'rigid', 'revolute',
yaml/unclosed_list.yaml | line 4, column 7: the YAML is malformed: did not find expected ',' or ']'
yaml/unknown_child.yaml | line 11: joint 'A': child 'amr' is not a body; did you mean 'arm'?
yaml/unknown_parent.yaml | line 10: joint 'A': parent 'grund' is not a body; did you mean 'ground'?
yaml/version_of_the_future.yaml | line 1: cardan must be 1, got '9'; it is the format's version
yaml/zero_axis.yaml | line 12: joint 'A': axis (0.0, 0.0, 0.0) has no direction; give a non-zero vector
yaml/zero_inertia_on_its_axis.yaml | line 5: body 'arm': ... has no inertia along ... joint 'A' (revolute) would ...
mjcf/actuator_on_no_joint.xml | line 9: actuator 'a': its joint 'k' is not a joint of this file; known: 'j'
mjcf/attribute_misspelt.xml | line 5: joint 'j': <joint> has no attribute 'axes' in MJCF; did you mean 'axis'?
mjcf/axis_of_four.xml | line 6: joint 'j': 'axis' of <joint> must be 3 numbers, ... got 4: '0 1 0 0'
mjcf/axis_of_two.xml | line 6: joint 'j': 'axis' of <joint> must be 3 numbers, separated by blanks, got 2: '0 1'
mjcf/ball_range.xml | line 6: joint 'j': 'range' of a ball joint is from 0 to the largest angle, got '1 2'; begin
mjcf/class_axis_of_two.xml | line 3: ...'axis' of <joint> must be 3 numbers, ... got 2: '0 1'
mjcf/class_unknown.xml | line 5: joint 'j': class 'leg' is not a defaults class; known: 'main'
mjcf/connect_to_nowhere.xml | line 9: connect 'connect_1': body2 'c' is not a body of this file; known: 'world', 'b'
mjcf/control_reversed.xml | line 9: actuator 'u': 'ctrlrange' must go from the smaller ... got '2 -3'; exchange them
mjcf/couples_nothing.xml | line 9: joint 'joint_1': joint2 'k' is not a joint of this file; known: 'j'
mjcf/element_misspelt.xml | line 5: jiont 'j': <body> has no element <jiont> in MJCF; did you mean 'joint'?
mjcf/entities.xml | the XML declares a document type ... not need and which are never read; remove the <!DOCTYPE
mjcf/euler_of_two.xml | line 4: body 'b': 'euler' of <body> must be 3 numbers, ... got 2: '1 0'
mjcf/free_and_hinge.xml | line 5: joint 'b_0': a body with a free joint has no other joint; remove the others
mjcf/free_joint_inside.xml | line 8: joint 'c': a free joint is for bodies directly in the world; use slide, hinge
mjcf/fromto_of_three.xml | line 5: <geom>: 'fromto' of <geom> must be 6 numbers, ... got 3: '0 0 1'
mjcf/full_inertia_of_three.xml | line 5: <inertial>: 'fullinertia' of <inertial> must be 6 numbers, ... got 3: '1 1 1'
mjcf/gear_of_seven.xml | line 9: motor 'u': 'gear' of <motor> must be from 1 to 6 numbers, got 7: '1 0
mjcf/global_coordinates.xml | line 2: <compiler>: coordinate="global" is no longer part of MJCF; save the model
mjcf/gravity_of_one.xml | line 3: <option>: 'gravity' of <option> must be 3 numbers, ... got 1: '-9.81'
mjcf/include_of_no_file.xml | line 2: <include>: its file 'none.xml': there is no such file
mjcf/include_outside.xml | line 2: <include>: its file '../../conftest.py' is outside the folder ... only files inside
mjcf/inertia_not_positive.xml | line 4: <inertial>: 'fullinertia' is not ... principal value is -4 ...; check signs
mjcf/inertia_of_four.xml | line 5: <inertial>: 'diaginertia' of <inertial> must be 3 numbers, ... got 4: '1 1 1 0'
mjcf/inertia_of_two.xml | line 4: <inertial>: 'diaginertia' of <inertial> ... separated by blanks, got 2: '1 1'
mjcf/joint_on_the_world.xml | line 3: joint 'j': the world cannot move: put <joint> into a body
mjcf/keyframe_too_short.xml | line 9: key 'home': 'qpos' of <key> must be from 1 to 1 numbers, got 3: '1 2 3'
mjcf/mass_in_words.xml | line 4: <inertial>: 'mass' of <inertial> has 'heavy', which is not a number
mjcf/mass_nan.xml | line 4: <inertial>: 'mass' of <inertial> must be finite, got 'nan'; leave out what is unknown
mjcf/massless_moving_body.xml | line 3: body 'b': it moves, and has mass 0 kg ...; both must be positive: give it
mjcf/mesh_of_no_file.xml | line 3: mesh 'hull': there is no file 'none.stl', looked for at ...none.stl'
mjcf/mismatched_tags.xml | line 3, column 3: the XML is malformed: mismatched tag
mjcf/negative_armature.xml | line 5: joint 'j': its armature is negative: -1; it is an inertia: give 0 or more
mjcf/negative_damping.xml | line 5: joint 'j': its damping is negative: -1; it would feed energy ...: give 0
mjcf/negative_density.xml | line 5: <geom>: its density is negative: -1; give 0 for a geom without mass
mjcf/negative_friction.xml | line 5: joint 'j': its frictionloss is negative: -1; it would feed ...: give 0 or more
mjcf/negative_mass.xml | line 4: <inertial>: its mass is negative: -1 kg; a body has positive mass: check
mjcf/negative_stiffness.xml | line 6: joint 'j': its stiffness is negative: -1; such a spring pushes away ...: give 0
mjcf/no_body.xml | line 1: mujoco: it has no <body>, only things that do not move; there is no mechanism in it
mjcf/no_mass.xml | line 4: <inertial>: <inertial> has no attribute 'mass'; give it
mjcf/position_nan.xml | line 3: body 'b': 'pos' of <body> must be finite, got 'nan'; leave out what is unknown or
mjcf/position_of_two.xml | line 4: body 'b': 'pos' of <body> must be 3 numbers, ... got 2: '0 1'
mjcf/quaternion_of_three.xml | line 4: body 'b': 'quat' of <body> must be 4 numbers, ... got 3: '1 0 0'
mjcf/quaternion_zero.xml | line 3: body 'b': 'quat' of <body> has no direction: '0 0 0 0'; give numbers
mjcf/range_missing.xml | line 5: joint 'j': 'limited' is true and there is no 'range'; give it
mjcf/range_of_one.xml | line 6: joint 'j': 'range' of <joint> must be 2 numbers, ... got 1: '1'
mjcf/range_reversed.xml | line 5: joint 'j': 'range' must go from the smaller ..., got '1 -1'; exchange them
mjcf/rotation_given_twice.xml | line 3: body 'b': <body> gives its rotation as 'quat' and as 'euler'; give it once
mjcf/sdf_inside.xml | the top element is <sdf>, and must be <mujoco>; is it another format?
mjcf/size_of_four.xml | line 5: <geom>: 'size' of <geom> must be from 1 to 3 numbers, got 4: '1 1 1 1'
mjcf/size_of_two.xml | line 5: <geom>: a box has 3 positive numbers as size, got '1 1'
mjcf/triangle_rule.xml | body 'b': ... triangle rule: 5 > 1 + 1 (...; did you give it about
mjcf/two_bodies_of_a_name.xml | line 6: body 'b': the name is given to two bodies
mjcf/two_inertials.xml | line 5: <inertial>: the body has two <inertial> elements; remove one
mjcf/two_joints_of_a_name.xml | line 6: joint 'j': the name is given to two joints; joint names must differ
mjcf/type_misspelt.xml | line 5: joint 'j': 'type' of <joint> must be one of free, ball, slide, hinge, got 'revolute'
mjcf/xyaxes_of_three.xml | line 4: body 'b': 'xyaxes' of <body> must be 6 numbers, ... got 3: '1 0 0'
mjcf/zaxis_of_two.xml | line 4: body 'b': 'zaxis' of <body> must be 3 numbers, ... got 2: '1 0'
mjcf/zero_axis.xml | line 5: joint 'j': 'axis' of <joint> has no direction: '0 0 0'; give numbers
mjcf/zero_inertia.xml | line 3: body 'b': it moves, ... least principal moment of inertia of 0 kg m^2 ...: give it
builder/armature_of_a_cut_joint.txt | joint 'C': it has ... and has no coordinate of its own; name another joint
builder/armature_of_two.txt | joint 'B': armature must be 3 numbers, got (1, 2) of shape (2,)
builder/body_added_twice.txt | body 'arm': the name is taken; bodies and frames must have different names
builder/bushing_of_five.txt | bushing 'b': stiffness must be 6 numbers, got (1, 1, 1, 1, 1) of shape (5,)
builder/coupling_of_a_ball.txt | coupling 'c': joint 'B' (spherical) has 3 coordinates; it must have one
builder/coupling_of_text.txt | coupling 'c': coefficients must be a dict of joint names and numbers, got 'A = B'
builder/cut_as_text.txt | mechanism 'm': cut must be a list of joint names, got 'A'
builder/cut_of_no_joint.txt | mechanism 'm': cut 'Z' is not a joint; known: 'A'
builder/cut_that_frees_a_body.txt | body 'hand': it has no joint, with 'B' cut; connect it, for a floating body
builder/drive_of_infinity.txt | drive 'd': its result is not finite: inf
builder/drive_of_no_coordinate.txt | drive 'd': joint 'B' (rigid) has no coordinate to act along
builder/drive_of_two_for_one.txt | drive 'd': its function must return a number, got [1, 2] of shape (2, 1)
builder/drive_that_branches.txt | drive 'd': its function cannot ... CasADi SXElem symbolic expression; it is run
builder/drive_with_math_sin.txt | drive 'd': its function cannot ... float() of the symbol SX(q); it is run
builder/force_on_two_of_a_name.txt | damper 's': the name is taken; forces, motions and couplings must differ in name
builder/forces_of_one_for_two.txt | user force 'u': its function must ... each of its bodies, got 1 of them
builder/free_as_list.txt | model 'm': free takes names one by one, as text, got ['arm.mass']
builder/free_number_of_a_leg.txt | parameter 'leg.mass' names no body, ... or 'gravity'; did you mean 'arm.mass'?
builder/free_number_of_no_body.txt | model 'm': ... no body, joint, force or constraint element; write 'element.field'
builder/free_twice.txt | model 'm': parameter 'arm.mass' is free already; name it once
builder/friction_smoothed_by_zero.txt | friction 'f': smoothing must be above 0, got 0; it is the speed over which
builder/gear_of_two.txt | actuator 'a': gear must be 1 number, got (1, 2) of shape (2,)
builder/gravity_in_words.txt | mechanism 'm': gravity must be 3 numbers, got 'down'
builder/gravity_set_to_nan.txt | mechanism 'm': gravity must be finite, got (0, nan, 0)
builder/hold_of_no_list.txt | assemble: hold must be a list of joint names, got 5
builder/inertia_axes_stretch.txt | body 'b': ... not a rotation matrix, R^T R = 1 is off by 3
builder/joint_data_as_dict.txt | joint 'A': data must be cd.JointData(...), got {'damping': 1}
builder/joint_data_mimics_a_name.txt | joint 'A': mimic of its data must be None or (joint, multiplier, offset), got 'B'
builder/joint_data_of_nan.txt | joint 'A': upper of its data must be a number or None, got nan
builder/load_with_five_parameters.txt | load: parameters must be a dict of names and values, got 5
builder/joint_from_none.txt | joint 'B': parent None is not a body; what does not move is 'ground'
builder/mass_as_text.txt | body 'arm': mass must be a number, got '2'
builder/mass_complex.txt | body 'arm': mass must be a number, got (2+1j)
builder/mass_given_negative_at_a_value.txt | parameter 'arm.mass' must be above 0, got -1 kg
builder/mechanism_not_built.txt | mechanism 'm' is not built yet; give mechanism.build()
builder/motion_that_jumps.txt | motion 'm': its rate at t = 0 is inf; give a function smooth from t = 0 on
builder/policy_unknown.txt | policy must be 'strict', 'warn' or 'repair', got 'lenient'
builder/pose_of_nan.txt | pose: position must be finite, got (nan, 0, 0)
builder/quaternion_of_the_wrong_order.txt | pose: ... 1.5] has length 1.73205, not 1; normalise it, and
builder/repair_of_a_gross_breach.txt | mjcf/triangle_rule.xml: ... triangle rule: 5 > 1 + 1
builder/root_unknown.txt | root must be 'fixed' or 'free', got 'floating'; free is for a floating base
builder/save_of_a_number.txt | save: give a Mechanism or a Model, got int
builder/save_over_a_file.txt | urdf/negative_mass.urdf: there is such a file already; pass overwrite=True to
builder/save_to_no_folder.txt | no/such/folder/arm.urdf: cannot be written, No such file or directory; is its folder
builder/save_to_unknown_format.txt | arm.sdf: suffix ... of a file that can be written; use .yaml, .urdf
builder/save_what_urdf_cannot_say.txt | arm.urdf: the format ... 't': URDF has no force elements; left out
builder/spring_of_negative_length.txt | spring 's': length must not be negative, got -1; it would feed energy in
builder/start_of_two_for_one.txt | joint 'B': start must be 1 number, got (1, 2) of shape (2,)
builder/start_quaternion_far_off.txt | joint 'B': start: ... 1., 1., 1.] has length 2, not 1; normalise it, and
builder/state_of_nothing.txt | state 's': q must be a dict of joints and their numbers, got None
builder/stiffness_true.txt | torsion 't': stiffness must be a number, got True
builder/values_as_list.txt | parameters: values must be a dict of names and numbers, got [2.0]
builder/wrench_on_ground.txt | wrench 'w': it acts on the ground, which does not move; name a body
builder/wrenches_of_no_list.txt | user force 'u': its function must return a list of 1 ... got one array(1.)
cli/bad_yaml.txt | yaml/zero_axis.yaml: line 12: joint 'A': axis (0.0, 0.0, 0.0) has no direction; give a non-zero
cli/bad_robot.txt | urdf/negative_mass.urdf: line 2: link 'a': mass is negative: -1 kg; a body has positive mass,
cli/convert_to_unknown_format.txt | arm.sdf: suffix '.sdf' is not that of a file that can be written; use .yaml, .urdf
cli/equations_unknown_formulation.txt | formulation 'lagrange' is not one; known: 'spatial', 'newton_euler',
cli/folder.txt | urdf: it is a directory, not a model file; name a file in it
cli/no_file.txt | Missing argument 'FILE'.
cli/no_states.txt | Invalid value for '--states': Input should be greater than or equal to 1
cli/no_such_file.txt | no_such_robot.urdf: there is no such file
cli/no_such_mechanism.txt | 'pendulm' is neither a file nor a mechanism of the catalogue; did you mean 'pendulum'?
cli/root_unknown.txt | --root must be fixed or free, got 'floating'
cli/samples_beyond_memory.txt | samples must be at most 10000000, or a list of times, got 99999999999
cli/simulate_backwards.txt | duration must be a positive number of seconds, got -1.0
cli/simulate_unknown_method.txt | method 'rk5' is not an integrator; did you mean 'rk4'?
cli/states_in_words.txt | Invalid value for '--states': Input should be a ... to parse string as an integer
cli/step_lost_in_rounding.txt | a step of 1e-30 s is lost in the rounding of t = 1 s; take longer
cli/two_files.txt | Got unexpected extra argument(s) (four_bar)
cli/unknown_command.txt | No such command 'solve'.
cli/unknown_option.txt | No such option: --verbose
cli/unknown_suffix.txt | test_broken.py: suffix '.py' is not a known model format; known: .urdf, .xml, .yaml,
"""
TABLE = dict(line.split(" | ", 1) for line in CASES.strip().splitlines())


def run(file: Path) -> None:
    """Do what a file of calls says."""
    exec(compile(file.read_text(), str(file), "exec"), {"cd": cd})


def call(file: Path) -> None:
    """Run the command line; what it prints becomes an exception."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["cardan", *shlex.split(file.read_text())])
        with pytest.raises(SystemExit) as stop:
            main()
    assert stop.value.code == 2


ACTIONS: dict[str, Callable[[Path], object]] = {
    "urdf": cd.load, "yaml": cd.load, "mjcf": cd.load, "builder": run, "cli": call
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_a_broken_input_is_told_in_one_sentence(
    case: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(HERE)
    folder = case.partition("/")[0]
    if folder == "cli":
        call(Path(case))
        said = " ".join(capsys.readouterr().err.replace("\u2502", " ").split())
    else:
        with pytest.raises(cd.CardanError) as error:
            ACTIONS[folder](Path(case))
        said = str(error.value).partition("\n")[0]
        assert error.value.__suppress_context__ or error.value.__cause__ or error.value.__context__ is None
        if folder in ("urdf", "yaml", "mjcf"):
            assert said.startswith(f"{case}: ")
    at = 0
    for part in TABLE[case].split("..."):
        found = said.find(part, at)
        assert found >= 0, f"{part!r} is not in {said!r}"
        at = found + len(part)


def test_every_file_has_a_case() -> None:
    files = {path.relative_to(HERE).as_posix() for folder in ACTIONS for path in (HERE / folder).iterdir()}
    assert files == set(TABLE)
    assert len(TABLE) >= 80
